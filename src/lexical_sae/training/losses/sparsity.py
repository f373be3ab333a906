"""Sparsity without a target: L1 + L0, gate sparsity and DF-FLOPS. See `target` for the others."""

from __future__ import annotations

import torch
from torch import Tensor

from lexical_sae.attribution.contributions import sum_by_row
from lexical_sae.model.open_words import OpenWords
from lexical_sae.training.distributed import mean_over_processes
from lexical_sae.training.losses.rows import flat_rows, row_count, row_mean, row_sum, soft_count

# Activations are in units of the lexical logits and frequencies at most 1: below this nothing
# worth the name is open.
_SMALLEST = 1e-7


def l1_l0(open_words: OpenWords, gain: float = 10.0, rows: Tensor | None = None) -> Tensor:
    """Mean over rows of Σ s / V + 0.1 · Σ (2σ(gain · s) − 1) / V.

    The sigmoid is ½ at s = 0; with this floor taken off, closed words cost nothing.
    """
    s = open_words.value
    # 2σ(x) − 1 = tanh(x/2)
    cost = s + 0.1 * torch.tanh(0.5 * gain * s)  # [P]
    return row_mean(row_sum(cost, open_words), rows) / open_words.dictionary_size


def gate_sparsity(
    open_words: OpenWords, theta: Tensor, width: Tensor | float, rows: Tensor | None = None
) -> Tensor:
    """Mean over rows of Σ σ((z − θ)/width) / V over the stored pairs; gradient into θ [V] and z.

    Pairs below the reach of the window are not stored and count 0, where the published form
    counts their sigmoid, which is near 0.
    """
    count = soft_count(open_words, theta, width)  # [rows]
    return row_mean(count, rows) / open_words.dictionary_size


def df_flops(
    open_words: OpenWords, document_frequency: Tensor, rows: Tensor | None = None
) -> Tensor:
    """L1(a)/(L2(a) · √V) with a_j = df_j · mean over rows of s_j; df [V], for instance the running
    open rates. From 1/√V (one word does it all) to 1; 0 if nothing is open.

    The mean is that of all processes: the ratio is not linear in it.
    """
    rows = flat_rows(rows)
    s = open_words.value
    if rows is not None:
        s = torch.where(rows[open_words.row], s, torch.zeros_like(s))
    count = row_count(s.new_empty(open_words.rows), rows)
    size = open_words.dictionary_size
    mean = mean_over_processes(sum_by_row(s, open_words.word, size) / count)  # [V]
    a = document_frequency.detach().to(s.dtype) * mean
    # a batch that opens next to nothing would get a gradient of 1/L2 without bound
    squares = a.square().sum()
    ratio = a.sum() / squares.clamp(min=_SMALLEST**2).sqrt() / size**0.5
    return torch.where(squares > _SMALLEST**2, ratio, 0.0 * ratio)
