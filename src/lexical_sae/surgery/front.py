"""The smallest cut for a gap: words taken out one by one, the one that is worth most first.

The words are chosen on one set of rows and the task's validation rows; what is shown is measured on
others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lexical_sae.model.state import CircuitState
from lexical_sae.surgery.decisions import Changed, Decisions
from lexical_sae.surgery.fairness import FEWEST_ROWS
from lexical_sae.surgery.rates import Bools

CANDIDATES = 250  # tried in each step
STEPS = 40
# What a point of accuracy costs in points of the gap: every price gives a path, the best is taken.
PRICES = (0.0, 0.5, 1.0, 2.0)
EXACT = 12  # digits of a gap: beyond, rounding would tell equal ones apart
SMOOTH = 0.5  # weight of the smooth measures beside the counted ones


@dataclass(frozen=True)
class Step:
    """One more word gone, and where that leads on the rows that words are chosen on."""

    coordinate: int
    gap: float
    accuracy: float


@dataclass(frozen=True, eq=False)
class Rows:
    """Decisions with their gold labels, for the two things that a cut is weighed by."""

    state: CircuitState
    labels: Tensor  # [N]


class GapMeter:
    """The mean |FPR gap| as words go, counted in decisions and smoothly in margins.

    Smooth: σ(margin / spread) in place of flagged or not, the spread that of the harmless rows'
    margins at the start. Where all rows of a group are flagged by far, no single word changes a
    decision, and only the smooth measure tells which one leads on. nan if no group is large enough.
    """

    def __init__(
        self, state: CircuitState, positive: Sequence[int], gold: Bools, groups: Mapping[str, Bools]
    ) -> None:
        self.decisions = Decisions(state)
        self._positive = torch.zeros(state.logits.shape[1], dtype=torch.bool)
        self._positive[list(positive)] = True
        harmless = torch.from_numpy(~gold)
        large = [rows & ~gold for rows in groups.values() if (rows & ~gold).sum() >= FEWEST_ROWS]
        overall = harmless.double() / max(1, int(harmless.sum()))
        means = [torch.from_numpy(rows / rows.sum()) - overall for rows in large]
        # [N, G]: each column weighs the rows as a group's rate minus that of all
        self._contrast = torch.stack(means, 1) if means else overall.new_zeros(len(overall), 0)
        margins = self._margins(state.logits)
        own = margins[harmless]
        self._spread = max(float(own.std()) if len(own) > 1 else 0.0, 1e-6)
        self._said = self._both(state.logits)  # [N, 2] counted, smooth
        self._gaps = self._contrast.T @ self._said  # [G, 2]

    @property
    def now(self) -> tuple[float, float]:
        return _mean_size(self._gaps)

    def tried(self, changed: Changed) -> tuple[float, float]:
        """Both gaps if it came to that."""
        return _mean_size(self._gaps + self._moved(changed))

    def cut(self, v: int) -> None:
        changed = self.decisions.cut(v)
        self._gaps = self._gaps + self._moved(changed)
        self._said[changed.rows] = self._both(changed.logits)

    def _moved(self, changed: Changed) -> Tensor:
        apart = self._both(changed.logits) - self._said[changed.rows]
        return self._contrast[changed.rows].T @ apart

    def _margins(self, logits: Tensor) -> Tensor:
        """[N]: log-odds of the positive classes."""
        wide = logits.detach().double()
        return wide[:, self._positive].logsumexp(-1) - wide[:, ~self._positive].logsumexp(-1)

    def _both(self, logits: Tensor) -> Tensor:
        flagged = self._positive[logits.argmax(-1)].double()
        return torch.stack([flagged, torch.sigmoid(self._margins(logits) / self._spread)], 1)


class TaskMeter:
    """The task's accuracy as words go, counted, and smoothly as the mean probability of the gold
    label: counted alone, a few rows at the border decide what a word costs."""

    def __init__(self, rows: Rows) -> None:
        self.decisions = Decisions(rows.state)
        self._labels = rows.labels
        self._right = self._both(rows.state.logits, rows.labels)  # [N, 2]
        self._sum = self._right.sum(0)

    @property
    def now(self) -> tuple[float, float]:
        return self._mean(self._sum)

    def tried(self, changed: Changed) -> tuple[float, float]:
        return self._mean(self._sum + self._moved(changed).sum(0))

    def cut(self, v: int) -> None:
        changed = self.decisions.cut(v)
        self._right[changed.rows] += self._moved(changed)
        self._sum = self._right.sum(0)

    def _moved(self, changed: Changed) -> Tensor:
        return self._both(changed.logits, self._labels[changed.rows]) - self._right[changed.rows]

    def _both(self, logits: Tensor, labels: Tensor) -> Tensor:
        wide = logits.detach().double()
        right = (wide.argmax(-1) == labels).double()
        return torch.stack([right, wide.softmax(-1).gather(1, labels[:, None])[:, 0]], 1)

    def _mean(self, total: Tensor) -> tuple[float, float]:
        counted, smooth = (total / max(1, len(self._labels))).tolist()
        return counted, smooth


def greedy_cut(
    biased: Rows,
    groups: Mapping[str, Bools],
    task: Rows,
    positive: Sequence[int],
    candidates: Sequence[int],
    *,
    largest_loss: float = 0.01,
    steps: int = STEPS,
) -> list[Step]:
    """The path that leaves the smallest mean |FPR gap| while the task's accuracy falls by no more
    than `largest_loss` in all. One path is walked for each price of accuracy; of equal ends the
    shorter path counts."""
    gold = np.isin(biased.labels.numpy(), list(positive))
    paths = []
    for price in PRICES:
        gap, right = GapMeter(biased.state, positive, gold, groups), TaskMeter(task)
        if math.isnan(gap.now[0]):  # no group is large enough to have one
            return []
        paths.append(walk(gap, right, candidates, price, largest_loss, steps))
    found = [path for path in paths if path]
    return min(found, key=lambda path: (path[-1].gap, len(path)), default=[])


def walk(
    gap: GapMeter,
    right: TaskMeter,
    candidates: Sequence[int],
    price: float,
    largest_loss: float,
    steps: int,
) -> list[Step]:
    """In each step that word goes which narrows the gap most, less its price in accuracy; words at
    the end that brought nothing are left out again."""
    first, allowed = gap.now[0], right.now[0] - largest_loss - 1e-12
    path: list[Step] = []
    left = list(candidates)[:CANDIDATES]
    while left and len(path) < steps:
        worths, wide, before = {}, gap.now, right.now
        for v in left:
            accuracy = right.tried(right.decisions.try_cut(v))
            if accuracy[0] >= allowed:
                narrowed = _worth(wide, gap.tried(gap.decisions.try_cut(v)))
                worths[v] = narrowed - price * max(0.0, _worth(before, accuracy))
        best = max(worths, key=lambda v: worths[v], default=None)
        if best is None or worths[best] <= 1e-12:
            break
        gap.cut(best)
        right.cut(best)
        left.remove(best)
        path.append(Step(best, round(gap.now[0], EXACT), right.now[0]))
    return path[: int(np.argmin([round(first, EXACT), *(step.gap for step in path)]))]


def _worth(before: tuple[float, float], after: tuple[float, float]) -> float:
    """How far both measures fall, weighed together."""
    return (before[0] - after[0]) + SMOOTH * (before[1] - after[1])


def _mean_size(gaps: Tensor) -> tuple[float, float]:
    if not len(gaps):
        return math.nan, math.nan
    counted, smooth = gaps.abs().mean(0).tolist()
    return counted, smooth


def candidate_words(wider: Sequence[Tensor], limit: int = CANDIDATES) -> list[int]:
    """Words by how much they widen the gaps of all groups together, the largest first; `wider` [V]
    has each group's parts."""
    if not wider:
        return []
    total = torch.stack(list(wider)).clamp(min=0).sum(0)  # [V]
    order = torch.argsort(total, descending=True, stable=True)[:limit]
    return [v for v in order.tolist() if total[v] > 0]
