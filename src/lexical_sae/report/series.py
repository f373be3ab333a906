"""Series of numbers out of a run's history, a list of records with a step each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

History = Sequence[Mapping[str, Any]]
Series = list[tuple[int, float]]

MANY = 40  # points from which a running mean reads better than the curve


def series(history: History, key: str) -> Series:
    """(step, value) of every record with a finite value; a later one of the same step replaces an
    earlier one."""
    found: dict[int, float] = {}
    for record in history:
        value = record.get(key)
        if isinstance(value, (int, float)) and math.isfinite(value):
            found[record["step"]] = float(value)
    return sorted(found.items())


def smoothed(values: Sequence[float]) -> list[float] | None:
    """The centred running mean over about a twentieth of the curve; None for a short one. At the
    beginning it takes fewer values, so that a steep start stays steep."""
    if len(values) < MANY:
        return None
    means = []
    for i in range(len(values)):
        reach = min(len(values) // 40, max(i, 2))
        around = values[max(0, i - reach) : i + reach + 1]
        means.append(sum(around) / len(around))
    return means


def warmup_end(history: History) -> int | None:
    """The last logged step of the warm-up. None for a dense model, which has no words to warm up
    for: to it all of the training is alike."""
    steps = [r["step"] for r in history if r.get("phase") == 0 and "open_words" in r]
    return max(steps, default=None)
