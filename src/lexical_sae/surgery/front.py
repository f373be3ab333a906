"""The smallest cut: words taken out one by one, the one that is worth most first.

What is to fall is the gap between groups, or the gap and the errors on the rows with groups: where
a shortcut is to go and those rows have it at random, being right there is what is wanted. The words
are chosen on these rows and the task's validation rows; what is shown is measured on others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from lexical_sae.surgery.meters import GapMeter, Meter, Rows, TaskMeter, WrongMeter
from lexical_sae.surgery.rates import Bools

Aim = Literal["gap", "gap and errors"]

CANDIDATES = 250  # tried in each step
STEPS = 40
# What a point of accuracy costs in points of what is to fall: every price gives a path, the best is
# taken.
PRICES = (0.0, 0.5, 1.0, 2.0)
EXACT = 12  # digits of what is left: beyond, rounding would tell equal ones apart
SMOOTH = 0.5  # weight of the smooth measures beside the counted ones


@dataclass(frozen=True)
class Step:
    """One more word gone, and where that leads on the rows that words are chosen on."""

    coordinate: int
    left: float  # of what is to fall: the gap, or the gap and the share of errors
    accuracy: float  # of the task


def greedy_cut(
    biased: Rows,
    groups: Mapping[str, Bools],
    task: Rows,
    positive: Sequence[int],
    candidates: Sequence[int],
    *,
    aim: Aim = "gap",
    largest_loss: float = 0.01,
    steps: int = STEPS,
) -> list[Step]:
    """The path that leaves the least of what is to fall, the mean |FPR gap| of the rows with groups
    or that and their errors, while the task's accuracy falls by no more than `largest_loss` in all.
    One path is walked for each price of accuracy; of equal ends the shorter path counts."""
    measure = GapMeter if aim == "gap" else WrongMeter
    paths = []
    for price in PRICES:
        wrong: Meter = measure(biased, positive, groups)
        if math.isnan(wrong.now[0]):  # no group is large enough to have a gap
            return []
        paths.append(walk(wrong, TaskMeter(task), candidates, price, largest_loss, steps))
    found = [path for path in paths if path]
    return min(found, key=lambda path: (path[-1].left, len(path)), default=[])


def walk(
    wrong: Meter,
    right: TaskMeter,
    candidates: Sequence[int],
    price: float,
    largest_loss: float,
    steps: int,
) -> list[Step]:
    """In each step that word goes which narrows most what is wrong, less its price in accuracy;
    words at the end that brought nothing are left out again."""
    first, allowed = wrong.now[0], right.now[0] - largest_loss - 1e-12
    path: list[Step] = []
    left = list(candidates)[:CANDIDATES]
    while left and len(path) < steps:
        worths, wide, before = {}, wrong.now, right.now
        for v in left:
            accuracy = right.tried(right.decisions.try_cut(v))
            if accuracy[0] >= allowed:
                narrowed = _worth(wide, wrong.tried(wrong.decisions.try_cut(v)))
                worths[v] = narrowed - price * max(0.0, _worth(before, accuracy))
        best = max(worths, key=lambda v: worths[v], default=None)
        if best is None or worths[best] <= 1e-12:
            break
        wrong.cut(best)
        right.cut(best)
        left.remove(best)
        path.append(Step(best, round(wrong.now[0], EXACT), right.now[0]))
    return path[: int(np.argmin([round(first, EXACT), *(step.left for step in path)]))]


def _worth(before: tuple[float, float], after: tuple[float, float]) -> float:
    """How far both measures fall, weighed together."""
    return (before[0] - after[0]) + SMOOTH * (before[1] - after[1])


def candidate_words(wider: Sequence[Tensor], limit: int = CANDIDATES) -> list[int]:
    """Words by how much they widen the gaps of all groups together, the largest first; `wider` [V]
    has each group's parts."""
    if not wider:
        return []
    total = torch.stack(list(wider)).clamp(min=0).sum(0)  # [V]
    order = torch.argsort(total, descending=True, stable=True)[:limit]
    return [v for v in order.tolist() if total[v] > 0]
