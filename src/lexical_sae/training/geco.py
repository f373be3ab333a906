"""GECO: one multiplier holds the task loss at a bound that the warm-up measured.

minimise the circuit terms subject to CE ≤ τ. While CE is above τ the multiplier λ of the task loss
grows, below it λ shrinks, and the circuit terms get what room there is.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from typing import Any

WARMUP_MEMORY = 50  # batches of warm-up CE from which τ is taken
QUARTILE = 0.25
MAX_RELAXATION = 1.5


def quantile(values: list[float], q: float) -> float:
    """Linear between the order statistics, as numpy does by default."""
    ordered = sorted(values)
    place = q * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def relaxation(open_words: float, target_words: float) -> float:
    """By how much τ is raised while the model is far denser than its target: 1 at the target,
    1.5 from e times the target on."""
    excess = math.log(max(1.0, open_words / target_words))
    return min(MAX_RELAXATION, 1 + 0.5 * min(1.0, excess))


class GECOController:
    """λ, τ and the running excess; all of its state is plain numbers, saved with a checkpoint.

    Call `warm_up(ce)` once per step of the warm-up, `start()` when it ends, and then
    `update(ce, open_words)` once per step. `multiplier` is λ.
    """

    def __init__(
        self,
        steps_per_epoch: int,
        *,
        target_words: float | None = None,
        clamp: float = 5.0,
    ) -> None:
        if steps_per_epoch < 1:
            raise ValueError(f"steps_per_epoch is {steps_per_epoch}; expected at least 1.")
        self.dual_step = 2 / (steps_per_epoch + 1)
        self.target_words = target_words
        self.clamp = clamp
        self.recent: deque[float] = deque(maxlen=WARMUP_MEMORY)
        self.bound: float | None = None  # τ
        self.excess: float | None = None  # EMA of CE − τ
        self.log_multiplier = 0.0

    @property
    def multiplier(self) -> float:
        return math.exp(self.log_multiplier)

    @property
    def started(self) -> bool:
        return self.bound is not None

    def warm_up(self, ce: float) -> None:
        self.recent.append(_finite(ce))

    def start(self, bound: float | None = None) -> None:
        """End the warm-up: τ is `bound` if given, else the lower quartile of the last CEs."""
        if bound is None:
            if not self.recent:
                raise ValueError("No warm-up step was seen, so τ cannot be set; give a bound.")
            bound = quantile(list(self.recent), QUARTILE)
        self.bound = _finite(bound)

    def relaxed_bound(self, open_words: float | None) -> float:
        """τ, relaxed while more words are open than wanted."""
        if self.bound is None:
            raise ValueError("The warm-up has not ended; call start() first.")
        if open_words is None or self.target_words is None:
            return self.bound
        return self.bound * relaxation(open_words, self.target_words)

    def update(self, ce: float, open_words: float | None = None) -> float:
        """One dual step; returns the new λ."""
        gap = _finite(ce) - self.relaxed_bound(open_words)
        eta = self.dual_step
        self.excess = gap if self.excess is None else (1 - eta) * self.excess + eta * gap
        moved = self.log_multiplier + eta * self.excess
        self.log_multiplier = max(-self.clamp, min(self.clamp, moved))
        return self.multiplier

    def state_dict(self) -> dict[str, Any]:
        return {
            "bound": self.bound,
            "excess": self.excess,
            "log_multiplier": self.log_multiplier,
            "recent": list(self.recent),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.bound = state["bound"]
        self.excess = state["excess"]
        self.log_multiplier = state["log_multiplier"]
        self.recent = deque(state["recent"], maxlen=WARMUP_MEMORY)


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError(
            f"The loss is {value}; training cannot go on. Lower learning_rate, or check the data."
        )
    return value
