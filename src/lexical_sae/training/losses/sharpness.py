"""Sharpness: few of the open words carry most of the contribution."""

from __future__ import annotations

import torch
from torch import Tensor

from lexical_sae.model.open_words import OpenWords
from lexical_sae.training.losses.rows import FLOOR, row_mean, row_sum, safe_norm


def sharpness(attribution: Tensor, open_words: OpenWords, rows: Tensor | None = None) -> Tensor:
    """Mean over rows of 1 − Hoyer(|A|), Hoyer = (√n − L1/L2)/(√n − 1), n = open words of the row.

    0 when one word carries everything, 1 when all carry the same. n counts open words, not the
    vocabulary: with n = V every sparse row would look sharp. Rows with n < 2, or without
    contributions, give 0.
    """
    size = attribution.abs()
    L1 = row_sum(size, open_words)  # [rows]
    squares = row_sum(size.square(), open_words)
    L2 = safe_norm(squares)
    n = open_words.counts().reshape(-1).to(size.dtype)
    # 1 − Hoyer = (L1/L2 − 1)/(√n − 1)
    flat = (L1 / L2 - 1) / (n.clamp(min=2).sqrt() - 1)
    defined = (n >= 2) & (squares > FLOOR**2)
    return row_mean(torch.where(defined, flat, torch.zeros_like(flat)), rows)
