"""Sparsity with a target: silent once few enough words are open, and pressing in proportion before.

value = e · surrogate / surrogate.detach(), e = max(0, log(number / target)). So what is logged is
the excess e itself, whatever the scale of the activations, and the gradient is e · ∇ log surrogate.
At or below the target both are exactly 0: nothing goes on closing words that the user asked for.
"""

from __future__ import annotations

import math

from torch import Tensor

from lexical_sae.model.open_words import OpenWords
from lexical_sae.training.distributed import mean_over_processes
from lexical_sae.training.losses.rows import FLOOR, row_mean, row_sum, soft_count


def target_l1(
    open_words: OpenWords, number: float, target: float, rows: Tensor | None = None
) -> Tensor:
    """Presses on the mean over rows of Σ s; `number`: open words per text."""
    return _pressed(row_sum(open_words.value, open_words), number, target, rows)


def target_l0(
    open_words: OpenWords,
    theta: Tensor,
    width: Tensor | float,
    number: float,
    target: float,
    rows: Tensor | None = None,
) -> Tensor:
    """Presses on the mean over rows of Σ σ((z − θ)/width) over the stored pairs: on z and θ [V]."""
    return _pressed(soft_count(open_words, theta, width), number, target, rows)


def _pressed(per_row: Tensor, number: float, target: float, rows: Tensor | None) -> Tensor:
    excess = math.log(max(number, target) / target)
    # of the whole batch: the gradient of its logarithm is not a mean over processes
    surrogate = mean_over_processes(row_mean(per_row, rows))
    # the floor bounds the gradient where activations have shrunk to nothing
    return excess * surrogate / surrogate.detach().clamp(min=FLOOR)
