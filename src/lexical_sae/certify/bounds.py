"""Sound lower bounds on the margins of a decision, whatever the words outside a set do.

Over u ∈ [low, high], for any slope a ∈ [0, 1]:

    a·u  ≤  relu(u)  ≤  a·u + max(−a·low, (1 − a)·high).

Where a unit helps the winner against a rival the left side is taken, where it helps the rival the
right one; the margin is then linear in x, and its least value over the box x ∈ [0, 1]^n is a sum.
Every slope gives a sound bound; the search below only looks for a tight one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lexical_sae.certify.row_problem import Floats, RowProblem

_ROUNDS = 2  # of slopes tried until the bound holds; more of them made no set smaller by a word


@dataclass(frozen=True, eq=False)
class MarginBounds:
    """For each rival: a number that the winner's margin never falls below, and the slopes used."""

    margin: Floats  # [R]
    slopes: Floats  # [R, K]

    @property
    def least(self) -> float:
        return float(self.margin.min()) if len(self.margin) else np.inf


class MarginBounder:
    """Bounds for one problem and many sets; what does not depend on the set is formed once."""

    def __init__(self, problem: RowProblem) -> None:
        rivals = problem.rivals()
        self.problem = problem
        self.d = problem.W2[problem.winner] - problem.W2[rivals]  # [R, K]
        self.e = problem.D[:, [problem.winner]] - problem.D[:, rivals]  # [n, R]
        self.b = problem.b2[problem.winner] - problem.b2[rivals]  # [R]
        self.negative = np.minimum(problem.G, 0.0)
        self.positive = np.maximum(problem.G, 0.0)

    def bounds(self, kept: NDArray[np.bool_], enough: float = np.inf) -> MarginBounds:
        """Words in `kept` [n] stay as they are, the others may take any share in [0, 1].

        Stops as soon as every margin is above `enough`.
        """
        G, free = self.problem.G, ~kept
        base = self.problem.b1 + G[kept].sum(0)  # [K]
        low = base + self.negative[free].sum(0)
        high = base + self.positive[free].sum(0)
        helps = self.d > 0  # [R, K]: the unit speaks for the winner
        chord = _chord(low, high)
        slopes = np.where(helps, np.where(high > -low, 1.0, 0.0), chord)  # [R, K]
        constant = self.b + self.e[kept].sum(0)  # [R]
        best: MarginBounds | None = None
        for turn in range(_ROUNDS):
            margin, worst = self._linear(slopes, helps, base, low, high, constant, free)
            best = _tighter(best, MarginBounds(margin, slopes))
            if best.least > enough or turn == _ROUNDS - 1:
                break
            # the best answer to the worst case found, mixed into what was tried before
            u = base + worst @ G[free]  # [R, K]
            answer = np.where(u > 0, 1.0, 0.0)
            mixed = slopes + (answer - slopes) / (turn + 2)
            # units that cannot switch keep their exact slope, and the chord is the tightest
            slopes = np.where(helps & (low < 0) & (high > 0), mixed, slopes)
        assert best is not None
        return best

    def _linear(
        self,
        slopes: Floats,
        helps: NDArray[np.bool_],
        base: Floats,
        low: Floats,
        high: Floats,
        constant: Floats,
        free: NDArray[np.bool_],
    ) -> tuple[Floats, Floats]:
        """(margin [R], worst x over the free words [R, f]) for these slopes."""
        weight = self.d * slopes  # [R, K]
        lift = np.maximum(-slopes * low, (1 - slopes) * high)  # [R, K], of the upper line
        offset = np.where(helps, 0.0, self.d * lift).sum(1)  # [R]
        pull = (self.problem.G[free] @ weight.T + self.e[free]).T  # [R, f]
        margin = constant + offset + weight @ base + np.minimum(pull, 0.0).sum(1)
        return margin, (pull < 0).astype(np.float64)


def _chord(low: Floats, high: Floats) -> Floats:
    """Slope of the line through (low, 0) and (high, high); 1 or 0 for units that cannot switch."""
    span = np.where(high > low, high - low, 1.0)
    return np.where(low >= 0, 1.0, np.where(high <= 0, 0.0, high / span))


def _tighter(best: MarginBounds | None, other: MarginBounds) -> MarginBounds:
    """Rival by rival, the larger bound."""
    if best is None:
        return other
    better = other.margin > best.margin
    return MarginBounds(
        np.where(better, other.margin, best.margin),
        np.where(better[:, None], other.slopes, best.slopes),
    )
