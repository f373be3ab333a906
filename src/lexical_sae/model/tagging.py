"""Sentences through a tagger: windows in, the state of every word out, sentence by sentence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from lexical_sae.model.mode import in_mode
from lexical_sae.model.precision import check_finite
from lexical_sae.model.sentence_logits import SentenceLogits
from lexical_sae.model.state import CircuitState
from lexical_sae.text.alignment import Window, sentence_windows

if TYPE_CHECKING:
    from lexical_sae.model.lexical_sae import LexicalSAE

BATCH = 32


@dataclass(frozen=True, eq=False)
class ReadWords:
    """The words of some windows, in their order, and what the model makes of them."""

    windows: tuple[Window, ...]  # `sentence` counts within the reading
    state: CircuitState  # one row per word

    def places(self) -> list[tuple[int, int]]:
        """(sentence, word) of each row."""
        return [(window.sentence, word) for window in self.windows for word in window.words]


@dataclass(frozen=True, eq=False)
class Reading:
    """Sentences that were read together."""

    sentences: tuple[int, ...]  # places among those given
    parts: tuple[ReadWords, ...]
    logits: SentenceLogits


def check_tagger(model: LexicalSAE) -> None:
    if model.config.task != "tagging":
        raise ValueError(
            f"This model is for {model.config.task}; expected one that was trained to tag words."
        )


@torch.no_grad()
def read_sentences(
    model: LexicalSAE, sentences: Sequence[Sequence[str]], batch_size: int = BATCH
) -> Iterator[Reading]:
    """All sentences (lists of words) in groups of like length, the longest first."""
    check_tagger(model)
    if batch_size < 1:
        raise ValueError(f"batch_size is {batch_size}; expected at least 1.")
    assert model.tokenizer is not None
    order = sorted(range(len(sentences)), key=lambda i: -sum(map(len, sentences[i])))
    for start in range(0, len(order), batch_size):
        group = order[start : start + batch_size]
        words = [sentences[i] for i in group]
        windows = sentence_windows(
            model.tokenizer, words, model.config.max_tokens, model.config.special_token_ids
        )
        logits = SentenceLogits([len(one) for one in words], model.config.labels)
        parts = []
        for first in range(0, len(windows), batch_size):
            part = _read(model, windows[first : first + batch_size])
            check_finite(part.state.logits)
            row = 0
            for window in part.windows:
                logits.add(window, part.state.logits[row : row + len(window.words)])
                row += len(window.words)
            parts.append(part)
        yield Reading(tuple(group), tuple(parts), logits)


def _read(model: LexicalSAE, windows: Sequence[Window]) -> ReadWords:
    input_ids, attention_mask, where = padded(model, windows)
    with in_mode(model, training=False):
        state = model.tag(input_ids, attention_mask, where)
    return ReadWords(tuple(windows), state.at_rows(where))


def padded(model: LexicalSAE, windows: Sequence[Window]) -> tuple[Tensor, Tensor, Tensor]:
    """Token ids, attention mask and first tokens of words, each [B, L]."""
    length = max(len(window.input_ids) for window in windows)
    assert model.tokenizer is not None
    input_ids = torch.full((len(windows), length), int(model.tokenizer.pad_token_id))
    attention_mask = torch.zeros_like(input_ids)
    where = torch.zeros(input_ids.shape, dtype=torch.bool)
    for row, window in enumerate(windows):
        input_ids[row, : len(window.input_ids)] = torch.tensor(window.input_ids)
        attention_mask[row, : len(window.input_ids)] = 1
        where[row, list(window.first)] = True
    device = model.device
    return input_ids.to(device), attention_mask.to(device), where.to(device)
