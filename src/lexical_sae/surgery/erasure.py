"""LEACE as the baseline: a concept erased from a representation by an affine map.

After it no linear probe tells the concept from the representation it was fitted on (Belrose et al.
2023). It is fitted on the concept's labels of training texts, never on those of the task, either on
the open words (the concept's own and those that occur most: all of V would take V × V covariances)
or on the pooled hidden state; the second map is then applied at every position, before the words
open.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from lexical_sae.evaluation.reading import BATCH
from lexical_sae.model.mode import in_mode
from lexical_sae.model.state import CircuitState
from lexical_sae.model.word_sums import sum_open_words
from lexical_sae.surgery.leak import sparse_rows

if TYPE_CHECKING:
    from lexical_sae.model.lexical_sae import LexicalSAE

SLICE = 1500  # words of the open slice
ROWS = 1024  # held densely at once

Eraser = Callable[[Tensor], Tensor]


def fit_leace(states: Tensor, concept: Tensor) -> Eraser:
    """states [N, D] of training rows, concept [N] or [N, G] of zeros and ones."""
    try:
        from concept_erasure import LeaceEraser
    except ImportError:
        raise ImportError(
            "LEACE needs the package concept-erasure: pip install 'lexical-sae[surgery]'."
        ) from None
    marks = concept if concept.dim() == 2 else concept[:, None]
    seen = marks.double().mean(0)
    if bool(((seen == 0) | (seen == 1)).any()):
        raise ValueError("A concept is on all rows or on none, so there is nothing to erase it by.")
    eraser: Any = LeaceEraser.fit(states.double(), marks.double())
    return lambda x: eraser(x.double()).to(x.dtype)


def slice_words(state: CircuitState, first: Sequence[int] = (), count: int = SLICE) -> Tensor:
    """[≤ count] coordinates, ascending: those of `first` that occur, then what most rows open."""
    words = state.open_words
    times = torch.bincount(words.word, minlength=words.dictionary_size)
    rank = times.double()
    rank[list(first)] += (rank[list(first)] > 0) * float(words.rows + 1)
    chosen = torch.argsort(rank, descending=True, stable=True)[:count]
    return chosen[times[chosen] > 0].sort().values


def dense_slice(state: CircuitState, words: Tensor) -> Tensor:
    """[N, K]: the values of these words."""
    place = torch.full((state.open_words.dictionary_size,), -1)
    place[words] = torch.arange(len(words))
    column = place[state.open_words.word]
    held = column >= 0
    dense = torch.zeros(state.open_words.rows, len(words), dtype=state.open_words.value.dtype)
    dense[state.open_words.row[held], column[held]] = state.open_words.value[held]
    return dense


def rows_after_slice(state: CircuitState, words: Tensor, eraser: Eraser) -> Any:
    """[N, V] sparse: the open words' values, those of the slice erased; what a probe may see."""
    from scipy.sparse import csr_matrix, hstack

    outside = state.open_words.subset(~torch.isin(state.open_words.word, words))
    erased = eraser(dense_slice(state, words).double())
    return hstack([csr_matrix(erased.numpy()), sparse_rows(outside)]).tocsr()


@torch.no_grad()
def logits_after_slice(state: CircuitState, words: Tensor, eraser: Eraser) -> Tensor:
    """[N, C]: the head on open words whose slice went through the eraser; the others stay."""
    table = state.head.word_table()
    found = []
    for start in range(0, state.open_words.rows, ROWS):
        where = torch.zeros(state.open_words.rows, dtype=torch.bool)
        where[start : start + ROWS] = True
        part = state.at_rows(where)
        outside = part.open_words.subset(~torch.isin(part.open_words.word, words))
        erased = eraser(dense_slice(part, words))
        total = sum_open_words(outside, table) + erased @ table[words]
        length = (outside.squared_lengths() + erased.square().sum(1)).sqrt()
        found.append(state.head.finish(total, length))
    return torch.cat(found)


@torch.no_grad()
def pooled_states(
    model: LexicalSAE,
    texts: Sequence[str],
    advance: Callable[[int], None] = lambda rows: None,
) -> Tensor:
    """[N, H]: the mean hidden state over the words of each text, as the lexical layer reads it."""
    order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
    found = torch.empty(len(texts), model.lexical.weight.shape[1])
    with in_mode(model, training=False):
        for start in range(0, len(order), BATCH):
            rows = order[start : start + BATCH]
            some, limit = [texts[i] for i in rows], model.config.max_tokens
            inputs = model.encode(some, limit).model_inputs()
            mask = model.word_mask(**inputs).unsqueeze(-1)
            h = model.hidden_states(**inputs) * mask
            found[rows] = (h.sum(1) / mask.sum(1).clamp(min=1)).float()
            advance(len(rows))
    return found


@contextlib.contextmanager
def erasing(model: LexicalSAE, eraser: Eraser) -> Iterator[None]:
    """Within the block every hidden state that the lexical layer reads goes through the eraser."""

    def erase(module: nn.Module, args: Any, output: Tensor) -> Tensor:
        return eraser(output)

    handle = model.transform.register_forward_hook(erase)
    try:
        yield
    finally:
        handle.remove()
