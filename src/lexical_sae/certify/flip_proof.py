"""The smallest flip set by integer programming (HiGHS, through scipy), one rival at a time.

Binary r_j says that word j is removed. A hidden unit that helps the winner only needs h ≥ 0 and
h ≥ u, since the program wants the winner's margin small; one that helps the rival needs a binary of
its own, which says whether it is on. The search for a rival only asks for sets smaller than the
best so far: with so few words gone many units cannot switch, and need no variable. The time is
divided between the rivals that are left.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lexical_sae.certify.flip import flips
from lexical_sae.certify.flip_bound import unit_ranges
from lexical_sae.certify.row_problem import RowProblem


@dataclass(frozen=True)
class FlipProof:
    """The smallest set found; `finished` if none smaller exists (none at all if None)."""

    removed: list[int] | None
    finished: bool
    at_least: int


def prove_flip(
    problem: RowProblem, start: list[int] | None, needed: Mapping[int, int], time_limit: float
) -> FlipProof:
    """Improve on `start` for every rival until the time is up; `needed`: words that each rival
    needs at the least."""
    try:
        import scipy.optimize  # noqa: F401  (its first import takes seconds that are no one's)
    except ImportError:
        raise ImportError(
            "A flip set is proved minimal with scipy, which is not installed; run "
            'pip install "lexical-sae[certify]".'
        ) from None
    deadline = time.monotonic() + time_limit
    best, finished, lowest = start, True, problem.words + 1
    logits = problem.logits(np.ones(problem.words))
    rivals = sorted(problem.rivals(), key=lambda c: -logits[c])
    for place, rival in enumerate(rivals):
        limit = len(best) - 1 if best is not None else problem.words
        seconds = (deadline - time.monotonic()) / (len(rivals) - place)
        answer = _smallest(problem, rival, needed[rival], limit, seconds)
        if answer.removed is not None:
            best = answer.removed
        finished = finished and answer.finished
        lowest = min(lowest, answer.at_least)
    if best is not None and lowest >= len(best):
        finished = True  # no rival can do with fewer words, though the time of one was up
    if finished:
        return FlipProof(best, True, len(best) if best is not None else 0)
    return FlipProof(best, False, max(1, min(lowest, len(best) if best is not None else lowest)))


def _smallest(problem: RowProblem, rival: int, least: int, limit: int, seconds: float) -> FlipProof:
    """The smallest set of `least` to `limit` words after whose removal `rival` beats the winner."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array

    if least > limit:
        return FlipProof(None, True, limit + 1)
    if seconds <= 0:
        return FlipProof(None, False, least)
    n, program = problem.words, _program(problem, rival, least, limit)
    matrix = csr_array((program.data, program.index), shape=(len(program.upper), len(program.cost)))
    solved = milp(
        program.cost,
        integrality=program.whole,
        bounds=Bounds(np.zeros(len(program.cost)), program.top),
        constraints=LinearConstraint(matrix, -np.inf, program.upper),
        options={"time_limit": seconds, "mip_rel_gap": 0.0},
    )
    bound = solved.mip_dual_bound if solved.mip_dual_bound is not None else 0.0
    at_least = max(least, int(np.ceil(bound - 1e-6)) if np.isfinite(bound) else 1)
    if solved.status == 2:  # infeasible
        return FlipProof(None, True, limit + 1)
    if solved.x is None:
        return FlipProof(None, False, at_least)
    removed = _chosen(solved.x[:n])
    if not flips(problem, removed):  # so near to a tie that rounding decides
        return FlipProof(None, False, at_least)
    return FlipProof(removed, solved.status == 0, at_least)


@dataclass(frozen=True, eq=False)
class _Program:
    """minimise cost · v subject to matrix · v ≤ upper, 0 ≤ v ≤ top, v whole where `whole`."""

    cost: NDArray[np.float64]
    whole: NDArray[np.float64]
    top: NDArray[np.float64]
    upper: NDArray[np.float64]
    data: list[float]
    index: tuple[list[int], list[int]]


def _program(problem: RowProblem, rival: int, least: int, limit: int) -> _Program:
    """Variables: r [n], h of the units that can bend [m], and whether those against are on [q].

    Every unit is measured in its own range and the margin in the size of the logits, so that the
    solver's absolute tolerance stays below the slack.
    """
    n = problem.words
    d = problem.W2[problem.winner] - problem.W2[rival]  # [K]
    full = problem.b1 + problem.G.sum(0)  # [K] u with nothing removed; u = full − r·G
    low, high = (ends[limit] for ends in unit_ranges(problem))  # [K]
    on, off = low >= 0, high <= 0
    bent = np.flatnonzero(~on & ~off & (d != 0))
    scale = high[bent] - low[bent]  # [m]
    G, full_b = problem.G[:, bent] / scale, full[bent] / scale  # [n, m], [m]
    low_b, high_b = low[bent] / scale, high[bent] / scale
    weight = d[bent] * scale / problem.size  # [m]
    m = len(bent)
    against = np.flatnonzero(weight < 0)
    rows: list[tuple[dict[int, float], float]] = []  # Σ coefficient · variable ≤ bound
    for i in range(m):  # h ≥ u
        pulled = {j: -float(G[j, i]) for j in range(n)}
        rows.append(({**pulled, n + i: -1.0}, -float(full_b[i])))
    for z, i in enumerate(against.tolist(), start=n + m):  # h ≤ u − low·(1 − z), h ≤ high·z
        pulled = {j: float(G[j, i]) for j in range(n)}
        rows.append(({**pulled, n + i: 1.0, z: -float(low_b[i])}, float(full_b[i] - low_b[i])))
        rows.append(({n + i: 1.0, z: -float(high_b[i])}, 0.0))
    # margin = Σ_on d·u + Σ_bent d·h + Σ_j (1 − r_j)·e_j + b. More than the slack is let in, so that
    # what is ruled out cannot even come to a tie; what is found is checked.
    e = problem.D[:, problem.winner] - problem.D[:, rival]  # [n]
    constant = problem.b2[problem.winner] - problem.b2[rival] + e.sum() + d[on] @ full[on]
    per_word = -(problem.G[:, on] @ d[on] + e) / problem.size  # [n]
    margin = {j: float(per_word[j]) for j in range(n)}
    margin |= {n + i: float(weight[i]) for i in range(m)}
    rows.append((margin, (1.5 * problem.slack - float(constant)) / problem.size))
    rows.append(({j: 1.0 for j in range(n)}, float(limit)))
    rows.append(({j: -1.0 for j in range(n)}, -float(least)))
    size = n + m + len(against)
    kind = np.concatenate([np.ones(n), np.zeros(m), np.ones(len(against))])
    return _Program(
        cost=np.concatenate([np.ones(n), np.zeros(size - n)]),
        whole=kind,
        top=np.concatenate([np.ones(n), np.maximum(high_b, 0.0), np.ones(len(against))]),
        upper=np.array([bound for _, bound in rows]),
        data=[value for row, _ in rows for value in row.values()],
        index=(
            [i for i, (row, _) in enumerate(rows) for _ in row],
            [column for row, _ in rows for column in row],
        ),
    )


def _chosen(r: NDArray[np.float64]) -> list[int]:
    return [int(j) for j in np.flatnonzero(r > 0.5)]
