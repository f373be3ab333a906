"""How often each word opens, and the term that revives words that never do."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lexical_sae.attribution.contributions import sum_by_row
from lexical_sae.model.open_words import OpenWords
from lexical_sae.training.distributed import sum_over_processes
from lexical_sae.training.losses.rows import flat_rows

# θ/spread counts up to here in the value, so that one far-off threshold cannot drown the others.
_HIGHEST = 10.0


class OpenRates(nn.Module):
    """rate[v] ← decay · rate[v] + (1 − decay) · share of the rows in which v is open.

    The first batch is copied. DF-FLOPS takes it as document frequency.
    """

    rate: Tensor
    started: Tensor

    def __init__(self, dictionary_size: int, decay: float = 0.99) -> None:
        super().__init__()
        self.decay = decay
        self.register_buffer("rate", torch.zeros(dictionary_size))  # [V]
        self.register_buffer("started", torch.zeros((), dtype=torch.bool))

    @torch.no_grad()
    def update(self, open_words: OpenWords, rows: Tensor | None = None) -> None:
        counted = flat_rows(rows)
        if counted is None:
            counted = torch.ones(open_words.rows, dtype=torch.bool, device=self.rate.device)
        is_open = ((open_words.value > 0) & counted[open_words.row]).to(self.rate.dtype)  # [P]
        total = sum_over_processes(sum_by_row(is_open, open_words.word, len(self.rate)))  # [V]
        number = sum_over_processes(counted.sum())
        keep = self.started.to(self.rate.dtype) * self.decay
        moved = keep * self.rate + (1 - keep) * total / number.clamp(min=1)
        self.rate.copy_(torch.where(number > 0, moved, self.rate))
        self.started.logical_or_(number > 0)

    @property
    def open_words(self) -> Tensor:
        """Running mean number of open words per row: the sum of the rates."""
        return self.rate.sum()


def frequency_penalty(
    rates: Tensor,
    theta: Tensor,
    spread: Tensor | float,
    target_words: float,
    cutoff: float = 0.1,
    *,
    open_ema: float,
    keep: Tensor | None = None,
) -> Tensor:
    """Mean over all words of 1[rate < limit] · (1 − rate/limit) · relu(θ)/spread, with
    limit = cutoff · target_words / V, a tenth of the rate of a word that does its share.

    Gradient into θ [V] alone, downwards. 0 as soon as `open_ema`, the running mean number of open
    words, reaches the target: reviving words must never fight the sparsity term. Suppressed words
    (`keep` [V] false) cannot open and are left alone.
    """
    rates = rates.detach().to(theta.dtype)
    limit = cutoff * target_words / theta.numel()
    shortfall = (1 - rates / limit).clamp(min=0)  # [V]
    if keep is not None:
        shortfall = shortfall * keep
    height = torch.relu(theta) / spread  # [V]
    bounded = height + (height.clamp(max=_HIGHEST) - height).detach()
    return float(open_ema < target_words) * (shortfall * bounded).mean()
