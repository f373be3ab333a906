"""What a cut is weighed by, as words go one after the other: gaps, accuracy, errors.

Every measure is a pair: counted in decisions, and smoothly in margins or probabilities. Where no
single word changes a decision, only the smooth one tells which word leads on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from lexical_sae.model.state import CircuitState
from lexical_sae.surgery.decisions import Changed, Decisions
from lexical_sae.surgery.fairness import FEWEST_ROWS
from lexical_sae.surgery.rates import Bools


class Meter(Protocol):
    """Something that words going can change."""

    decisions: Decisions

    @property
    def now(self) -> tuple[float, float]: ...

    def tried(self, changed: Changed) -> tuple[float, float]:
        """Both measures if it came to that."""

    def cut(self, v: int) -> None: ...


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

    def __init__(self, rows: Rows, positive: Sequence[int], groups: Mapping[str, Bools]) -> None:
        state, gold = rows.state, np.isin(rows.labels.numpy(), list(positive))
        self.decisions = Decisions(state)
        self._positive = torch.zeros(state.logits.shape[1], dtype=torch.bool)
        self._positive[list(positive)] = True
        harmless = torch.from_numpy(~gold)
        large = [own & ~gold for own in groups.values() if (own & ~gold).sum() >= FEWEST_ROWS]
        overall = harmless.double() / max(1, int(harmless.sum()))
        means = [torch.from_numpy(own / own.sum()) - overall for own in large]
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


class ErrorMeter(TaskMeter):
    """What is wrong instead of what is right, so that a search can narrow it."""

    def _mean(self, total: Tensor) -> tuple[float, float]:
        counted, smooth = super()._mean(total)
        return 1 - counted, 1 - smooth


class WrongMeter:
    """What is wrong with rows that have groups: their mean |FPR gap| and their share of errors,
    added up. By the gap alone, words that the decision needs would go with those behind it: without
    them nothing is flagged, and nobody more often than others."""

    def __init__(self, rows: Rows, positive: Sequence[int], groups: Mapping[str, Bools]) -> None:
        self.gap = GapMeter(rows, positive, groups)
        self.errors = ErrorMeter(rows)
        self.decisions = self.gap.decisions

    @property
    def now(self) -> tuple[float, float]:
        return _added(self.gap.now, self.errors.now)

    def tried(self, changed: Changed) -> tuple[float, float]:
        return _added(self.gap.tried(changed), self.errors.tried(changed))

    def cut(self, v: int) -> None:
        self.gap.cut(v)
        self.errors.cut(v)


def _added(some: tuple[float, float], others: tuple[float, float]) -> tuple[float, float]:
    return some[0] + others[0], some[1] + others[1]


def _mean_size(gaps: Tensor) -> tuple[float, float]:
    if not len(gaps):
        return math.nan, math.nan
    counted, smooth = gaps.abs().mean(0).tolist()
    return counted, smooth
