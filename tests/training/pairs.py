"""Open words from dense matrices; light, so that worker processes start fast."""

from __future__ import annotations

import torch
from torch import Tensor

from lexical_sae.model.open_words import OpenWords, Sources, one_source_each


def sparse(value: Tensor, kept: Tensor | None = None, logit: Tensor | None = None) -> OpenWords:
    """Open words from a dense matrix [rows, V]; `kept` says which pairs are stored (default: those
    above 0). Gradients reach `value` and `logit`."""
    kept = value > 0 if kept is None else kept
    row, word = kept.nonzero(as_tuple=True)
    logit = value if logit is None else logit
    return one_source_each(
        row,
        word,
        value[row, word],
        logit[row, word],
        torch.zeros_like(row),
        shape=(value.shape[0],),
        dictionary_size=value.shape[1],
    )


def two_sources(open_words: OpenWords, second: Tensor) -> OpenWords:
    """The same pairs, each with a second source of logit `second` [P], as attention gives them."""
    n = len(open_words)
    first = open_words.sources
    sources = Sources(
        pair=torch.arange(n).repeat_interleave(2),
        position=torch.tensor([0, 1]).repeat(n),
        value=(first.value / 2).repeat_interleave(2),
        logit=torch.stack([first.logit, second], 1).reshape(-1),
    )
    return OpenWords(
        open_words.row,
        open_words.word,
        open_words.value,
        sources,
        open_words.shape,
        open_words.dictionary_size,
    )
