"""No removal of k words takes a margin below its bound, and the bound says how few can never do."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given

from lexical_sae.certify.flip_bound import least_margins, unit_ranges, words_needed
from lexical_sae.model.state import CircuitState
from tests.certify.problems import row_problem, smallest_flips, states


@given(states(most=7))
def test_ranges_and_margins_hold_for_every_removal(state: CircuitState) -> None:
    problem = row_problem(state, 0)
    low, high = unit_ranges(problem)
    margins = {c: least_margins(problem, c, (low, high)) for c in problem.rivals()}
    spare = 1e-9 * problem.size
    for kept in itertools.product([0.0, 1.0], repeat=problem.words):
        x = np.array(kept)
        gone = int((x == 0).sum())
        u = x @ problem.G + problem.b1
        assert (low[gone] <= u + spare).all()
        assert (u <= high[gone] + spare).all()
        logits = problem.logits(x)
        for rival, least in margins.items():
            assert least[gone] <= logits[problem.winner] - logits[rival] + spare


@given(states(most=7))
def test_fewer_words_than_needed_never_flip(state: CircuitState) -> None:
    problem = row_problem(state, 0)
    least = min(words_needed(problem).values())
    smallest = smallest_flips(problem, ties=True)
    if smallest is not None:
        assert least <= smallest


def test_for_a_linear_head_the_bound_is_the_answer() -> None:
    from tests.certify.problems import make_state

    for seed in range(30):
        problem = row_problem(make_state(7, 2, 1, kind="linear", hidden_bias=False, seed=seed), 0)
        smallest = smallest_flips(problem, ties=True)
        least = words_needed(problem)[1 - problem.winner]
        assert least == (smallest if smallest is not None else problem.words + 1)


def test_what_the_bound_rules_out_is_called_impossible() -> None:
    from lexical_sae.certify.flip import flip_set
    from tests.certify.problems import make_state

    ruled_out = 0
    for seed in range(400):
        state = make_state(6, 4, 4, kind="mlp", hidden_bias=True, seed=seed)
        problem = row_problem(state, 0)
        least = min(words_needed(problem).values())
        found = flip_set(problem)
        assert found.at_least <= problem.words
        if least > problem.words:
            assert found.impossible
            assert smallest_flips(problem, ties=True) is None
            ruled_out += 1
    assert ruled_out
