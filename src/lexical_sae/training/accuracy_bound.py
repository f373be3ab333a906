"""From an accuracy that must be kept to a bound on the cross-entropy, by measurement.

An accuracy is no cross-entropy: 0.9 as a bound on CE would mean nothing. Each evaluation on the
validation split gives a point (CE, accuracy); between the points, chance (log C, 1/C) and
certainty (0, 1) accuracy falls as CE rises, and the bound is where it crosses the target.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any


class AccuracyBound:
    """Collects points on validation and gives the CE at which the wanted accuracy is kept."""

    def __init__(self, target_accuracy: float, classes: int) -> None:
        self.target = target_accuracy
        self.classes = classes
        self.points: list[tuple[float, float]] = []  # (CE, accuracy)

    def add(self, ce: float, accuracy: float) -> None:
        self.points.append((ce, accuracy))

    def bound(self) -> float:
        """The CE at which the measured curve crosses the target accuracy."""
        measured = _falling(sorted(self.points))
        last_ce, last = measured[-1] if measured else (0.0, 1.0)
        worst = max(math.log(self.classes), last_ce)
        curve = [(0.0, 1.0), *measured, (worst, min(1 / self.classes, last))]
        # from the right: the largest CE at which the accuracy is still reached
        for (left, high), (right, low) in reversed(list(itertools.pairwise(curve))):
            if low <= self.target <= high:
                along = (high - self.target) / (high - low) if high > low else 1.0
                return left + along * (right - left)
        return worst  # below chance: any cross-entropy will do

    def state_dict(self) -> dict[str, Any]:
        return {"points": [list(point) for point in self.points]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.points = [(ce, accuracy) for ce, accuracy in state["points"]]


def _falling(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points with accuracies pooled until they fall as CE rises (adjacent violators)."""
    pools: list[tuple[list[float], float]] = []  # (CEs, mean accuracy)
    for ce, accuracy in points:
        pools.append(([ce], accuracy))
        while len(pools) > 1 and pools[-2][1] < pools[-1][1]:
            right_ces, right = pools.pop()
            left_ces, left = pools.pop()
            weight = len(left_ces) / (len(left_ces) + len(right_ces))
            pools.append((left_ces + right_ces, weight * left + (1 - weight) * right))
    return [(ce, accuracy) for ces, accuracy in pools for ce in ces]
