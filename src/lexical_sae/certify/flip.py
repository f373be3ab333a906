"""Flip sets: words whose removal changes the decision. Greedy at once, proved minimal on demand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lexical_sae.certify.bounds import MarginBounder
from lexical_sae.certify.flip_bound import words_needed
from lexical_sae.certify.row_problem import RowProblem

TIME_LIMIT = 10.0  # seconds for a proof, unless told otherwise


@dataclass(frozen=True)
class FlipSet:
    """Removing `coordinates` makes `becomes` the decision.

    `coordinates` is None if nothing was found; then `impossible` says whether it is proved that no
    removal can flip the decision, or even make it a tie. `optimal`: no smaller set does.
    `at_least`: no set of fewer words does, as far as is proved.
    """

    coordinates: tuple[int, ...] | None
    becomes: int | None
    optimal: bool
    impossible: bool
    at_least: int

    def to_dict(self) -> dict[str, Any]:
        return {
            "coordinates": None if self.coordinates is None else list(self.coordinates),
            "becomes": self.becomes,
            "optimal": self.optimal,
            "impossible": self.impossible,
            "at_least": self.at_least,
        }


def flip_set(
    problem: RowProblem, *, optimal: bool = False, time_limit: float = TIME_LIMIT
) -> FlipSet:
    """The fewest words to remove to change the decision.

    Greedy unless `optimal`, which proves the set minimal by integer programming within
    `time_limit` seconds, or else says that it is not proved. A set that is given flips the decision
    by more than single precision can round; a set that comes so close to a tie that rounding
    decides is neither given nor ruled out, and then nothing is claimed to be proved.
    """
    if not time_limit > 0:
        raise ValueError(f"time_limit is {time_limit}; expected seconds above 0.")
    none_kept = np.zeros(problem.words, dtype=np.bool_)
    bounds = MarginBounder(problem).bounds(none_kept, problem.slack)
    if not problem.words or bounds.least > problem.slack:
        return FlipSet(None, None, optimal=False, impossible=True, at_least=0)
    found = greedy_flip(problem)
    needed = words_needed(problem)
    least = min(needed.values())
    if least > problem.words:
        return FlipSet(None, None, optimal=False, impossible=True, at_least=0)
    if found is not None and len(found) == least:
        return _flip(problem, found, optimal=True, at_least=least)
    if not optimal:
        return _flip(problem, found, optimal=False, at_least=least)
    from lexical_sae.certify.flip_proof import prove_flip

    proof = prove_flip(problem, found, needed, time_limit)
    if proof.removed is None and proof.finished:
        return FlipSet(None, None, optimal=False, impossible=True, at_least=0)
    return _flip(problem, proof.removed, optimal=proof.finished, at_least=proof.at_least)


def _flip(
    problem: RowProblem, removed: list[int] | None, *, optimal: bool, at_least: int
) -> FlipSet:
    if removed is None:
        return FlipSet(None, None, optimal=False, impossible=False, at_least=at_least)
    return FlipSet(
        coordinates=tuple(problem.coordinates[j] for j in removed),
        becomes=int(problem.logits(_without(problem, removed)).argmax()),
        optimal=optimal,
        impossible=False,
        at_least=at_least,
    )


def flips(problem: RowProblem, removed: list[int]) -> bool:
    """Whether another class wins, by more than rounding, once these words are removed."""
    return bool(_gap(problem, _without(problem, removed)[None])[0] < -problem.slack)


def greedy_flip(problem: RowProblem) -> list[int] | None:
    """Word by word, each time the one whose removal leaves the smallest margin; then every word
    that turns out not to be needed is put back. None if that never flips the decision."""
    left: NDArray[np.float64] = np.ones(problem.words)
    removed: list[int] = []
    while not flips(problem, removed):
        candidates = np.flatnonzero(left)
        if not len(candidates):
            return None
        trials = np.repeat(left[None], len(candidates), axis=0)
        trials[np.arange(len(candidates)), candidates] = 0.0
        best = int(candidates[int(np.argmin(_gap(problem, trials)))])
        left[best] = 0.0
        removed.append(best)
    for word in list(removed):
        fewer = [j for j in removed if j != word]
        if flips(problem, fewer):
            removed = fewer
    return removed


def _gap(problem: RowProblem, x: NDArray[np.float64]) -> NDArray[np.float64]:
    """[m]: the winner's logit over its strongest rival's; x [m, n]."""
    logits = problem.logits(x)
    if problem.classes < 2:
        return np.full(len(logits), np.inf)
    gap: NDArray[np.float64] = logits[:, problem.winner] - logits[:, problem.rivals()].max(1)
    return gap


def _without(problem: RowProblem, removed: list[int]) -> NDArray[np.float64]:
    x: NDArray[np.float64] = np.ones(problem.words)
    x[removed] = 0.0
    return x
