"""How many words should be open at each step, and how hard the sparsity term pushes for it.

A fixed weight gives another number of open words on every dataset. So the number itself is held:
while more words are open than wanted the pressure grows, below it shrinks, as a multiplier does. It
also eases while the number falls, or it would still be high when the target is passed.
In the warm-up no more is wanted than was open at the start: without that a tagger's words grow to
ten times as many before the terms begin, and every step pays for them. Then the wanted number falls
geometrically from what the warm-up left open to the target, since a model that is thinned at once
loses words that it has not yet learnt to use.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

SMOOTHING = 0.9  # of the running mean of open words
RAMP = 0.6  # share of the circuit phase after which the target is wanted in full
GAIN = 0.1  # change of log pressure per step at e times the wanted number
DAMPING = 2.0  # and per step in which the number falls e-fold: else it falls far below the target
AIM = 0.9  # of the wanted number: the term is 0 below it, so the mean settles just under the target


class DensityControl:
    """The running number of open words, what is wanted now, and the pressure."""

    def __init__(self, target_words: float, start_words: float, pressure: float = 0.01) -> None:
        self.target = target_words
        self.start = max(start_words, target_words)
        self.open_words: float | None = None
        self.before: float | None = None  # open words at the step before
        self.log_pressure = self.first_pressure = math.log(pressure)
        self.progress = 0.0  # of the circuit phase, 0 to 1

    @property
    def pressure(self) -> float:
        return math.exp(self.log_pressure)

    @property
    def wanted(self) -> float:
        done = min(1.0, self.progress / RAMP)
        return math.exp((1 - done) * math.log(self.start) + done * math.log(self.target))

    @property
    def aim(self) -> float:
        return AIM * self.wanted

    def observe(self, open_words: float) -> None:
        """The mean of one step, over all processes."""
        self.before = self.open_words
        if self.before is not None:
            open_words = SMOOTHING * self.before + (1 - SMOOTHING) * open_words
        self.open_words = open_words

    def begin(self) -> None:
        """The circuit phase starts: nothing more than is open now is ever wanted again."""
        self.log_pressure = max(self.log_pressure, self.first_pressure)
        if self.open_words is not None:
            self.start = max(self.target, min(self.start, self.open_words))

    @property
    def crowded(self) -> bool:
        """Whether more words are open than is wanted now."""
        return self.open_words is not None and self.open_words > self.wanted

    def update(self, progress: float) -> None:
        """One step of the pressure; `progress` is that of the circuit phase, 0 before it."""
        self.progress = progress
        now = max(self.open_words or 0.0, 1e-3)
        before = now if self.before is None else max(self.before, 1e-3)
        excess = max(-1.0, min(1.0, math.log(now / self.aim)))
        falling = min(0.0, math.log(now / before))
        moved = self.log_pressure + GAIN * excess + DAMPING * falling
        self.log_pressure = max(-12.0, min(6.0, moved))

    def state_dict(self) -> dict[str, Any]:
        return {
            "start": self.start,
            "open_words": self.open_words,
            "before": self.before,
            "log_pressure": self.log_pressure,
            "progress": self.progress,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.start = state["start"]
        self.open_words = state["open_words"]
        self.before = state["before"]
        self.log_pressure = state["log_pressure"]
        self.progress = state["progress"]


def above_half(number: float, target: float) -> float:
    """1 from the target on, 0 at half of it and below."""
    return min(1.0, max(0.0, 2 * number / target - 1))
