"""A model's pass over labelled texts, kept: open words and logits of every decision."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from lexical_sae.model.lexical_sae import LexicalSAE
from lexical_sae.model.mode import in_mode
from lexical_sae.model.open_words import OpenWords, Sources
from lexical_sae.model.precision import check_finite
from lexical_sae.model.state import CircuitState
from lexical_sae.text.tokenise import Encoded

BATCH = 32
CHUNK_ROWS = 2048  # decisions whose attributions are held at once


class NotPossible(ValueError):  # noqa: N818  (no fault: a step that has nothing to work on)
    """A step cannot be done for this subject; the message says why and what would make it so."""


@dataclass(frozen=True, eq=False)
class Reading:
    """N decisions in the order of the texts; for a tagger they are words, in the order read."""

    state: CircuitState  # logits [N, C]
    labels: Tensor  # [N] the gold ones
    names: tuple[str, ...]  # [N] what was decided on: a text, or a word among its neighbours

    @property
    def rows(self) -> int:
        return len(self.labels)

    def chunks(self, rows: int = CHUNK_ROWS) -> Iterator[tuple[CircuitState, Tensor]]:
        """Some decisions after the other, with their gold labels."""
        for start in range(0, self.rows, rows):
            where = torch.zeros(self.rows, dtype=torch.bool)
            where[start : start + rows] = True
            yield self.state.at_rows(where), self.labels[where]

    def some(self, rows: Sequence[int]) -> Reading:
        """The decisions at `rows`, in their own order."""
        where = torch.zeros(self.rows, dtype=torch.bool)
        where[list(rows)] = True
        names = tuple(self.names[i] for i in torch.nonzero(where)[:, 0].tolist())
        return Reading(self.state.at_rows(where), self.labels[where], names)


def spread(rows: int, count: int) -> list[int]:
    """At most `count` of the places 0 … rows − 1, evenly spread."""
    if rows <= count:
        return list(range(rows))
    return [i * rows // count for i in range(count)]


def joined(states: Sequence[CircuitState]) -> CircuitState:
    """The decisions of several states of the same head, one after the other."""
    if not states:
        raise ValueError("No states were given; expected at least one.")
    row_start = pair_start = 0
    parts: dict[str, list[Tensor]] = {name: [] for name in ("row", "word", "value")}
    sources: dict[str, list[Tensor]] = {name: [] for name in ("pair", "position", "value", "logit")}
    for state in states:
        words = state.open_words
        parts["row"].append(words.row + row_start)
        parts["word"].append(words.word)
        parts["value"].append(words.value)
        sources["pair"].append(words.sources.pair + pair_start)
        for name in ("position", "value", "logit"):
            sources[name].append(getattr(words.sources, name))
        row_start += words.rows
        pair_start += len(words)
    together = OpenWords(
        row=torch.cat(parts["row"]),
        word=torch.cat(parts["word"]),
        value=torch.cat(parts["value"]),
        sources=Sources(**{name: torch.cat(tensors) for name, tensors in sources.items()}),
        shape=(row_start,),
        dictionary_size=states[0].open_words.dictionary_size,
    )
    logits = torch.cat([state.logits.reshape(-1, state.logits.shape[-1]) for state in states])
    return CircuitState(logits, together, states[0].head)


@torch.no_grad()
def read_texts(
    model: LexicalSAE,
    texts: Sequence[str],
    labels: Sequence[int],
    *,
    batch_size: int = BATCH,
    advance: Callable[[int], None] = lambda rows: None,
) -> Reading:
    """One pass, texts of like length together; the result is in the order given."""
    order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
    states: list[CircuitState] = []
    with in_mode(model, training=False):
        for start in range(0, len(order), batch_size):
            part = order[start : start + batch_size]
            encoded: Encoded = model.encode([texts[i] for i in part])
            state = model.classify(**encoded.model_inputs())
            check_finite(state.logits)
            states.append(state)
            advance(len(part))
    return Reading(reordered(joined(states), order), torch.tensor(list(labels)), tuple(texts))


def reordered(state: CircuitState, order: Sequence[int]) -> CircuitState:
    """Row i of `state` becomes row order[i]."""
    words = state.open_words
    place = torch.tensor(order, device=words.row.device)
    row = place[words.row]
    by_row = torch.argsort(row, stable=True)  # [P] pairs in their new order
    new_pair = torch.empty_like(by_row)
    new_pair[by_row] = torch.arange(len(by_row), device=by_row.device)
    by_pair = torch.argsort(new_pair[words.sources.pair], stable=True)
    sources = Sources(
        pair=new_pair[words.sources.pair][by_pair],
        position=words.sources.position[by_pair],
        value=words.sources.value[by_pair],
        logit=words.sources.logit[by_pair],
    )
    moved = replace(
        words, row=row[by_row], word=words.word[by_row], value=words.value[by_row], sources=sources
    )
    logits = torch.empty_like(state.logits)
    logits[place] = state.logits
    return replace(state, logits=logits, open_words=moved)
