"""A learned margin for the contrastive separation."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class LearnedMargin(nn.Module):
    """m = softplus(raw) > 0, moved until the share of rows that miss it is `target_rate`.

    Trained through the hinge alone, m gets the gradient "share of violated rows", which is never
    below 0: it can only shrink, and the easiest way to satisfy a margin is to give it up. Here its
    gradient is (violated rate − target rate), so that it grows while nearly all rows satisfy it and
    shrinks while too many do not. That is the gradient of mean relu(gap + m) − target_rate · m, a
    convex function of m whose minimum is a quantile of the gaps, so m cannot run away.

    The rate is that of all processes, so m stays equal on all of them, under DDP or not. Leave it
    out of weight decay, which would pull `raw` to 0, a margin of 0.69.
    """

    def __init__(self, initial: float = 0.1, target_rate: float = 0.1) -> None:
        super().__init__()
        if not (initial > 0 and 0 < target_rate < 1):
            raise ValueError(
                f"initial is {initial} and target_rate {target_rate}; expected a margin above 0 "
                "and a rate between 0 and 1."
            )
        self.target_rate = target_rate
        self.raw = nn.Parameter(torch.tensor(math.log(math.expm1(initial))))

    def forward(self) -> Tensor:
        return F.softplus(self.raw)

    def move(self, violated_rate: Tensor, any_row: Tensor) -> Tensor:
        """Value 0, gradient (violated rate − target rate); none if no row was compared.

        Into `raw` directly: through the softplus a margin near 0 would hardly move any more.
        """
        push = torch.where(any_row, violated_rate - self.target_rate, 0.0).detach()
        return push * (self.raw - self.raw.detach())
