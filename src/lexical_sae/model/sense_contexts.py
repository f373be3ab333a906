"""The contexts of words: hidden states at the places where a word stands in a text.

Only where the word itself stands: a coordinate opens at many other words too, and to tell those
apart would be to find out which word was written, not what is meant by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from lexical_sae.model.gate import nonnegative_threshold
from lexical_sae.model.mode import in_mode
from lexical_sae.text.tokenise import check_texts

if TYPE_CHECKING:
    from lexical_sae.model.lexical_sae import LexicalSAE

BATCH = 32


@dataclass(frozen=True, eq=False)
class Contexts:
    """N places where some word of the dictionary stands."""

    word: Tensor  # [N] ascending
    state: Tensor  # [N, H]

    def counts(self) -> dict[int, int]:
        found, times = torch.unique_consecutive(self.word, return_counts=True)
        return dict(zip(found.tolist(), times.tolist(), strict=True))

    def of(self, word: int, most: int | None = None) -> Tensor:
        """[n, H]: the states of a word; at most so many, evenly spread."""
        left, right = torch.searchsorted(self.word, torch.tensor([word, word + 1])).tolist()
        states = self.state[left:right]
        if most is None or len(states) <= most:
            return states
        return states[torch.arange(most) * len(states) // most]


@torch.no_grad()
def word_contexts(
    model: LexicalSAE,
    texts: Sequence[str],
    words: Sequence[int] | None = None,
    *,
    open_only: bool = False,
) -> Contexts:
    """Of all words of the dictionary, or of those given (coordinates); with `open_only` not where
    the word is closed though it stands there."""
    check_texts(texts)
    lexical = model.lexical
    table = _word_of_token(model, words)
    theta = nonnegative_threshold(lexical.threshold)[: lexical.words]
    found_words, found_states = [table[:0]], [lexical.weight[:0].cpu()]
    by_length = sorted(texts, key=len)
    tagging = model.config.task == "tagging"
    with in_mode(model, training=False):
        for start in range(0, len(by_length), BATCH):
            inputs = model.encode(by_length[start : start + BATCH]).model_inputs()
            mask = model.word_mask(**inputs) if tagging else model.document_mask(**inputs)
            word = table[inputs["input_ids"]]  # [B, L], −1: none
            here = mask & (word >= 0)
            if not bool(here.any()):
                continue
            state = model.hidden_states(**inputs)[here].to(lexical.weight.dtype)  # [n, H]
            word = word[here]
            if open_only:
                z = (state * lexical.weight[word]).sum(1) + lexical.bias[word]
                is_open = z > theta[word]
                word, state = word[is_open], state[is_open]
            found_words.append(word.cpu())
            found_states.append(state.cpu())
    word = torch.cat(found_words)
    order = torch.argsort(word, stable=True)
    return Contexts(word[order], torch.cat(found_states)[order])


def _word_of_token(model: LexicalSAE, words: Sequence[int] | None) -> Tensor:
    """[vocabulary]: the word of each token id that is looked for, −1 for all others."""
    assert model.tokenizer is not None
    ids = model.lexical.token_ids[: model.lexical.words]
    which = torch.arange(len(ids)) if words is None else torch.tensor(list(words))
    which = which.to(ids.device)
    size = max(len(model.tokenizer), int(ids.max()) + 1)
    table = torch.full((size,), -1, dtype=torch.long, device=ids.device)
    table[ids[which]] = which
    return table
