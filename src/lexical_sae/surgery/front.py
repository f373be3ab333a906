"""The smallest cut for a gap: words taken out one by one, the one that helps most first.

The words are chosen on one set of rows and the task's validation rows; what is shown is measured on
others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lexical_sae.model.state import CircuitState
from lexical_sae.surgery.effect import after_removal
from lexical_sae.surgery.fairness import FEWEST_ROWS, mean_fpr_gap
from lexical_sae.surgery.gap import flagged_rows
from lexical_sae.surgery.rates import Bools

CANDIDATES = 40  # tried in each step
STEPS = 40


class Decisions:
    """Logits of N rows as words are cut one after the other; only rows that open the word are
    computed anew."""

    def __init__(self, state: CircuitState) -> None:
        self.state, self.logits = state, state.logits.detach().clone()
        self.gone: list[int] = []
        order = torch.argsort(state.open_words.word, stable=True)
        word, self._rows = state.open_words.word[order], state.open_words.row[order]
        edges = torch.arange(state.open_words.dictionary_size + 1)
        self._start = torch.searchsorted(word.contiguous(), edges)

    def rows_with(self, v: int) -> Tensor:
        """Rows that open the word."""
        return self._rows[int(self._start[v]) : int(self._start[v + 1])]

    def try_cut(self, v: int) -> Tensor:
        """[N, C]: the logits if the word went too."""
        rows = self.rows_with(v)
        found = self.logits.clone()
        if len(rows):
            where = torch.zeros(len(found), dtype=torch.bool)
            where[rows] = True
            found[where] = after_removal(self.state.at_rows(where), [*self.gone, v]).logits
        return found

    def cut(self, v: int) -> None:
        self.logits = self.try_cut(v)
        self.gone.append(v)


class SmoothGap:
    """The mean |FPR gap| with σ(margin / spread) in place of flagged or not; the spread is that of
    the harmless rows' margins at the start. nan if no group is large enough."""

    def __init__(
        self, logits: Tensor, positive: Sequence[int], gold: Bools, groups: Mapping[str, Bools]
    ) -> None:
        self.positive = list(positive)
        self.others = [c for c in range(logits.shape[1]) if c not in self.positive]
        harmless = [rows & ~gold for rows in groups.values()]
        large = [rows for rows in harmless if rows.sum() >= FEWEST_ROWS]
        overall = torch.from_numpy(~gold).double()
        self.overall = overall / overall.sum().clamp(min=1)  # [N] weights of a mean
        means = [torch.from_numpy(rows / rows.sum()) for rows in large]
        self.groups = torch.stack(means) if means else overall.new_zeros(0, len(overall))  # [G, N]
        margins = self._margins(logits)[~torch.from_numpy(gold)]
        self.spread = max(float(margins.std()) if len(margins) > 1 else 0.0, 1e-6)

    def _margins(self, logits: Tensor) -> Tensor:
        """[N]: log-odds of the positive classes."""
        wide = logits.detach().double()
        return wide[:, self.positive].logsumexp(-1) - wide[:, self.others].logsumexp(-1)

    def __call__(self, logits: Tensor) -> float:
        if not len(self.groups):
            return math.nan
        flagged = torch.sigmoid(self._margins(logits) / self.spread)  # [N]
        return float((self.groups @ flagged - self.overall @ flagged).abs().mean())


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


def greedy_cut(
    biased: Rows,
    groups: Mapping[str, Bools],
    task: Rows,
    positive: Sequence[int],
    candidates: Sequence[int],
    *,
    largest_loss: float = 0.01,
    steps: int = STEPS,
    advance: Callable[[int], None] = lambda steps: None,
) -> list[Step]:
    """The path: in each step the candidate whose removal leaves the smallest mean |FPR gap|, as
    long as the task's accuracy falls by no more than `largest_loss` in all and the gap falls.

    Where all rows of a group are flagged by far no single word changes a decision. So if no
    candidate narrows the gap, the one goes that narrows a gap which is smooth in the margins,
    without widening the other; words at the end that brought nothing are left out again.
    """
    gold = np.isin(biased.labels.numpy(), list(positive))
    moving, steady = Decisions(biased.state), Decisions(task.state)
    start = float((steady.logits.argmax(-1) == task.labels).double().mean())
    smooth = SmoothGap(moving.logits, positive, gold, groups)
    first = _gap(moving.logits, positive, gold, groups)
    gap, slope, left = first, smooth(moving.logits), list(candidates)
    path: list[Step] = []
    if math.isnan(gap):  # no group is large enough to have one
        return path
    while left and len(path) < steps:
        tried = []
        for place, v in enumerate(left[:CANDIDATES]):
            accuracy = float((steady.try_cut(v).argmax(-1) == task.labels).double().mean())
            if accuracy >= start - largest_loss - 1e-12:
                logits = moving.try_cut(v)
                found = _gap(logits, positive, gold, groups)
                tried.append((found, place, v, accuracy, smooth(logits)))
        best = min(tried, default=None)
        if best is None or best[0] >= gap:
            level = [one for one in tried if one[0] <= gap and one[4] < slope]
            best = min(level, key=lambda one: one[4], default=None)
            if best is None:
                break
        gap, _, v, accuracy, slope = best
        moving.cut(v)
        steady.cut(v)
        left.remove(v)
        path.append(Step(v, gap, accuracy))
        advance(1)
    return path[: int(np.argmin([first, *(step.gap for step in path)]))]


def candidate_words(parts: Sequence[Tensor], limit: int = CANDIDATES * 3) -> list[int]:
    """Words by how much they widen the gaps of all groups together, the largest first."""
    if not parts:
        return []
    total = torch.stack(list(parts)).clamp(min=0).sum(0)  # [V]
    order = torch.argsort(total, descending=True, stable=True)[:limit]
    return [v for v in order.tolist() if total[v] > 0]


def _gap(
    logits: Tensor, positive: Sequence[int], gold: Bools, groups: Mapping[str, Bools]
) -> float:
    return mean_fpr_gap(flagged_rows(logits, positive), gold, groups)
