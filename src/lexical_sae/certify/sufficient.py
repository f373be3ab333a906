"""Certified sufficient reasons: words that decide the label whatever the other open words do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lexical_sae.certify.bounds import MarginBounder, MarginBounds
from lexical_sae.certify.row_problem import Floats, RowProblem


@dataclass(frozen=True, eq=False)
class SufficientReason:
    """The label stands while these words stay, with every other open word at any share in [0, 1].

    `margin` [R] and `slopes` [R, K] are the certificate: for each other class, in the order of the
    classes, a bound on the winner's margin and the slopes that prove it (see `certify.check`).
    """

    coordinates: tuple[int, ...]
    winner: int
    margin: tuple[float, ...]
    slopes: Floats

    def to_dict(self) -> dict[str, Any]:
        return {
            "coordinates": list(self.coordinates),
            "winner": self.winner,
            "margin": list(self.margin),
            "slopes": self.slopes.tolist(),
            "shape": list(self.slopes.shape),
        }

    @classmethod
    def from_dict(cls, found: dict[str, Any]) -> SufficientReason:
        return cls(
            coordinates=tuple(found["coordinates"]),
            winner=int(found["winner"]),
            margin=tuple(found["margin"]),
            slopes=np.array(found["slopes"], dtype=np.float64).reshape(found["shape"]),
        )


def sufficient_reason(problem: RowProblem) -> SufficientReason | None:
    """A set from which no single word can be dropped without losing this proof; None if not even
    all open words prove the decision, because its margin is within what single precision rounds.

    Words are added by what they give the winner over the runner-up until the bound holds, then
    dropped one by one, weakest first, wherever it still holds.
    """
    bounder, enough = MarginBounder(problem), problem.slack
    order = np.argsort(-_support(problem), kind="stable")

    def certified(chosen: np.ndarray[Any, Any]) -> MarginBounds | None:
        kept = np.zeros(problem.words, dtype=np.bool_)
        kept[chosen] = True
        found = bounder.bounds(kept, enough)
        return found if found.least > enough else None

    size = _fewest(problem.words, lambda count: certified(order[:count]) is not None)
    if size is None:
        return None
    chosen = list(order[:size])
    proof = certified(order[:size])
    before = None
    while before != len(chosen):  # a bound may hold for a set and not for a larger one
        before = len(chosen)
        for word in list(reversed(chosen)):
            without = [j for j in chosen if j != word]
            found = certified(np.array(without, dtype=np.int64))
            if found is not None:
                chosen, proof = without, found
    assert proof is not None
    return SufficientReason(
        coordinates=tuple(problem.coordinates[j] for j in chosen),
        winner=problem.winner,
        margin=tuple(proof.margin.tolist()),
        slopes=proof.slopes,
    )


def _support(problem: RowProblem) -> Floats:
    """[n]: each word's contribution to the winner's margin over the runner-up."""
    x = np.ones(problem.words)
    if problem.classes < 2:
        return np.zeros(problem.words)
    logits = problem.logits(x)
    rivals = problem.rivals()
    runner_up = rivals[int(np.argmax(logits[rivals]))]
    active = problem.b1 + problem.G.sum(0) > 0
    through = (problem.W2[problem.winner] - problem.W2[runner_up]) * active  # [K]
    support: Floats = problem.G @ through + problem.D[:, problem.winner] - problem.D[:, runner_up]
    return support


def _fewest(most: int, holds: Callable[[int], bool]) -> int | None:
    """The smallest count at which `holds`, by bisection; None if not even all do.

    Exact where holding is monotone; a sound bound need not be, and then it is merely small.
    """
    if holds(0):
        return 0
    if not holds(most):
        return None
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
