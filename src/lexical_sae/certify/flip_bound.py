"""How many words must go at the least before a decision can change: a bound at once.

If at most k words are removed, a hidden unit stays within what the k strongest words for or against
it can move it. Within that range relu lies between two lines (see `bounds`), so the margin is at
least a linear function of what is removed, and the k words that lower it most give its least value.
"""

from __future__ import annotations

import numpy as np

from lexical_sae.certify.row_problem import Floats, RowProblem


def unit_ranges(problem: RowProblem) -> tuple[Floats, Floats]:
    """(low, high), each [n + 1, K]: what the units can be when at most k words are removed."""
    full = problem.b1 + problem.G.sum(0)  # [K]
    return full - _largest_sums(problem.G), full + _largest_sums(-problem.G)


def _largest_sums(pulls: Floats) -> Floats:
    """[n + 1, K]: the sum of the k largest positive numbers of every column of [n, K]."""
    falling = -np.sort(-np.maximum(pulls, 0.0), axis=0)
    return np.concatenate([np.zeros((1, pulls.shape[1])), np.cumsum(falling, axis=0)])


def least_margins(problem: RowProblem, rival: int, ranges: tuple[Floats, Floats]) -> Floats:
    """[n + 1]: numbers that the margin over `rival` never falls below when at most k words go;
    `ranges` are those of `unit_ranges`."""
    low, high = ranges
    full = low[0]  # nothing is removed
    d = problem.W2[problem.winner] - problem.W2[rival]  # [K]
    e = problem.D[:, problem.winner] - problem.D[:, rival]  # [n]
    b = problem.b2[problem.winner] - problem.b2[rival] + e.sum()
    span = np.where(high > low, high - low, 1.0)
    chord = np.where(low >= 0, 1.0, np.where(high <= 0, 0.0, high / span))  # [n + 1, K]
    helps = d > 0
    best = np.full(problem.words + 1, -np.inf)
    # a unit that helps the winner may take any slope: as it is now, the larger side, the chord
    for slope in (full > 0, high > -low, chord):
        fixed = np.where(low >= 0, 1.0, np.where(high <= 0, 0.0, slope))
        a = np.where(helps, fixed, chord)  # [n + 1, K]
        lift = np.where(helps, 0.0, np.maximum(-a * low, (1.0 - a) * high))
        weight = d * a
        pull = -(weight @ problem.G.T + e)  # [n + 1, n] what removing a word does to the margin
        worst = np.cumsum(np.sort(np.minimum(pull, 0.0), axis=1), axis=1)  # [n + 1, n]
        taken = np.concatenate([[0.0], np.diagonal(worst, offset=-1)])  # row k: the k worst
        best = np.maximum(best, b + weight @ full + lift @ d + taken)
    return best


def words_needed(problem: RowProblem) -> dict[int, int]:
    """For every rival: no removal of fewer words can even bring it to a tie; n + 1 if none can."""
    ranges = unit_ranges(problem)
    needed = {}
    for rival in problem.rivals():
        possible = np.flatnonzero(least_margins(problem, rival, ranges) <= 1.5 * problem.slack)
        needed[rival] = max(1, int(possible[0])) if len(possible) else problem.words + 1
    return needed
