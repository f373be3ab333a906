"""Anchor: a coordinate stays about its word.

Contributions must come from words that the untrained backbone opens for the same text too; else a
rare word can become a private flag, and the explanation reads well but means nothing.
"""

from __future__ import annotations

import torch
from torch import Tensor

from lexical_sae.model.open_words import OpenWords
from lexical_sae.training.losses.rows import row_mean, share_outside


def anchor(
    attribution: Tensor, inside: Tensor, open_words: OpenWords, rows: Tensor | None = None
) -> Tensor:
    """Mean over rows of Σ|A| over words outside the reference / Σ|A|; `inside` [P] from
    `ReferenceWords.contains`. Gradient through both sums; rows without contributions give 0."""
    return row_mean(share_outside(attribution, inside, open_words), rows)


@torch.no_grad()
def overlap(attribution: Tensor, inside: Tensor, open_words: OpenWords) -> Tensor:
    """[rows]: the share of Σ|A| that comes from reference words; 1 for rows without any."""
    return 1 - share_outside(attribution, inside, open_words)
