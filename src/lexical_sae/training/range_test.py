"""The learning-rate range test: a short run with a rising rate shows where the loss falls best."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from torch import Tensor, nn
from torch.optim import Optimizer

from lexical_sae.training.untouched import untouched

WINDOW = 10
DIVERGED = 4.0  # times the best loss
SAFE_RANGE = (1e-6, 1e-3)
FALLBACK = 3e-5
# A fall of the averaged loss below this many of its standard errors is what the lowest of many
# averages of pure noise reaches too.
_CLEAR = 4.0


@dataclass(frozen=True)
class RangeTest:
    """`rate` is the learning rate to take; `stopped_at` the step at which the loss ran away."""

    rate: float
    rates: tuple[float, ...]
    losses: tuple[float, ...]
    stopped_at: int | None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def learning_rate_range_test(
    step_loss: Callable[[int], Tensor],
    model: nn.Module,
    build: Callable[[float], Optimizer],
    *,
    steps: int = 100,
    low: float = 1e-7,
    high: float = 1e-2,
) -> RangeTest:
    """Train for `steps` steps while the rate rises from `low` to `high`, then undo it all.

    `step_loss(i)` is the training loss of batch i; `build(rate)` makes the optimiser, without a
    warm-up of its own; each group's rate is the tried one times its "factor". `model` must hold
    every parameter and buffer that a step changes (a `ModuleList` of model and objective does):
    they, the random states and the modes are afterwards bit by bit what they were. What a step
    keeps outside of tensors is not known here, and is the caller's to restore.
    """
    if steps < 2 * WINDOW or not 0 < low < high:
        raise ValueError(
            f"A range test of {steps} steps from {low} to {high} cannot work; expected at least "
            f"{2 * WINDOW} steps and 0 < low < high."
        )
    rates = [low * (high / low) ** (i / (steps - 1)) for i in range(steps)]
    optimizer = build(low)
    losses: list[float] = []
    stopped_at = None
    with untouched(model, (p for group in optimizer.param_groups for p in group["params"])):
        model.train()
        if callable(train := getattr(optimizer, "train", None)):
            train()  # Schedule-Free takes no step otherwise
        for i, rate in enumerate(rates):
            loss = step_loss(i)
            value = float(loss.detach())
            if math.isfinite(value):
                losses.append(value)
            if not math.isfinite(value) or _ran_away(losses):
                stopped_at = i
                break
            for group in optimizer.param_groups:
                group["lr"] = rate * group.get("factor", 1.0)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return RangeTest(
        steepest_rate(rates[: len(losses)], losses),
        tuple(rates[: len(losses)]),
        tuple(losses),
        stopped_at,
    )


def steepest_rate(rates: Sequence[float], losses: Sequence[float]) -> float:
    """The rate at which the averaged loss falls fastest, or the fallback if it never clearly does.

    The slope is taken between two averages that lie side by side: the difference of two that
    overlap in all but one point is that of two single batches, mostly noise. Only the way down
    to the lowest average counts, since a loss that has run away may fall steeply again.
    """
    average = _averages(losses)
    if len(average) <= WINDOW:
        return FALLBACK
    lowest = int(np.argmin(average))
    # neighbouring batches differ by noise alone; the median is blind to a loss that runs away
    noise = float(np.median(np.abs(np.diff(losses)))) / (0.6745 * math.sqrt(2))
    error = noise * math.sqrt(2 / WINDOW)
    fall = float(average[0] - average[lowest])
    slopes = average[WINDOW : lowest + 1] - average[: max(lowest + 1 - WINDOW, 0)]
    if fall <= _CLEAR * error or len(slopes) == 0:
        return FALLBACK
    steepest = int(np.argmin(slopes))
    around = np.log(rates[steepest : steepest + 2 * WINDOW])
    return float(np.clip(np.exp(around.mean()), *SAFE_RANGE))


def _averages(losses: Sequence[float]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Means of WINDOW neighbours, one per full window."""
    windows = range(len(losses) - WINDOW + 1)
    return np.array([math.fsum(losses[i : i + WINDOW]) / WINDOW for i in windows])


def _ran_away(losses: Sequence[float]) -> bool:
    """Whether the averaged loss is DIVERGED times its best; a best below zero has no multiple."""
    average = _averages(losses)
    if len(average) == 0:
        return False
    return bool(average[-1] > DIVERGED * average.min() > 0)
