"""Certified sets hold against every mask, forgeries are refused, flip sets are minimal."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lexical_sae.certify.check import check_sufficient_reason
from lexical_sae.certify.flip import flip_set
from lexical_sae.certify.sufficient import SufficientReason, sufficient_reason
from lexical_sae.model.state import CircuitState
from tests.certify.problems import make_state, row_problem, smallest_flips, states


@given(states(), st.integers(0, 2**31))
def test_a_certified_set_survives_every_mask_and_scaling(state: CircuitState, seed: int) -> None:
    problem = row_problem(state, 0)
    reason = sufficient_reason(problem)
    if reason is None:
        return
    assert check_sufficient_reason(state, 0, reason)
    kept = np.isin(problem.coordinates, reason.coordinates)
    masks = np.array(list(itertools.product([0.0, 1.0], repeat=problem.words)))
    scalings = np.random.default_rng(seed).random((200, problem.words))
    tried = np.concatenate([masks, scalings])
    tried[:, kept] = 1.0
    assert (problem.logits(tried).argmax(1) == problem.winner).all()
    # the model itself, in single precision
    left = state.with_open_words(state.open_words.scaled(torch.tensor(tried[-1]).float()))
    assert int(left.predicted[0]) == problem.winner


@given(states())
def test_no_word_of_a_certified_set_is_idle(state: CircuitState) -> None:
    """Dropping any one word loses this proof (the drop that the search itself tries)."""
    from lexical_sae.certify.bounds import MarginBounder

    problem = row_problem(state, 0)
    reason = sufficient_reason(problem)
    if reason is None:
        return
    bounder = MarginBounder(problem)
    for word in reason.coordinates:
        rest = [c for c in reason.coordinates if c != word]
        bounds = bounder.bounds(np.isin(problem.coordinates, rest), problem.slack)
        assert bounds.least <= problem.slack


@given(st.integers(0, 2**31))
def test_linear_heads_get_the_smallest_set_there_is(seed: int) -> None:
    """Their bound is exact, so with two classes brute force finds nothing smaller."""
    state = make_state(7, 2, 1, kind="linear", hidden_bias=False, seed=seed)
    problem = row_problem(state, 0)
    reason = sufficient_reason(problem)
    if reason is None:
        return
    pull = problem.D[:, problem.winner] - problem.D[:, 1 - problem.winner]
    bias = problem.b2[problem.winner] - problem.b2[1 - problem.winner]
    for size in range(len(reason.coordinates)):
        for kept in itertools.combinations(range(7), size):
            fixed = np.isin(range(7), kept)
            assert bias + pull[fixed].sum() + np.minimum(pull[~fixed], 0).sum() <= problem.slack


@given(states())
def test_the_checker_refuses_forged_certificates(state: CircuitState) -> None:
    problem = row_problem(state, 0)
    reason = sufficient_reason(problem)
    if reason is None or not reason.coordinates:
        return
    boast = replace(reason, margin=tuple(m + 1 for m in reason.margin))
    assert not check_sufficient_reason(state, 0, boast)
    assert not check_sufficient_reason(state, 0, replace(reason, margin=()))
    assert not check_sufficient_reason(state, 5, reason)
    assert not check_sufficient_reason(state, 0, replace(reason, winner=99))
    outside = replace(reason, coordinates=(*reason.coordinates, 10**6))
    assert not check_sufficient_reason(state, 0, outside)
    if reason.slopes.size:
        steep = replace(reason, slopes=reason.slopes + 2.0)
        assert not check_sufficient_reason(state, 0, steep)
        assert not check_sufficient_reason(state, 0, replace(reason, slopes=reason.slopes[:, :-1]))
        for bad in (np.nan, np.inf):
            broken = replace(reason, slopes=np.full_like(reason.slopes, bad))
            assert not check_sufficient_reason(state, 0, broken)
    loser = replace(reason, winner=(reason.winner + 1) % problem.classes)
    assert not check_sufficient_reason(state, 0, loser)


def test_the_checker_agrees_with_brute_force_on_sets_that_do_not_suffice() -> None:
    refused = 0
    for seed in range(40):
        state = make_state(6, 3, 4, kind="mlp", hidden_bias=False, seed=seed)
        problem = row_problem(state, 0)
        reason = sufficient_reason(problem)
        if reason is None:
            continue
        for word in reason.coordinates:
            claim = replace(reason, coordinates=tuple(c for c in reason.coordinates if c != word))
            masks = np.array(list(itertools.product([0.0, 1.0], repeat=problem.words)))
            masks[:, np.isin(problem.coordinates, claim.coordinates)] = 1.0
            stands = (problem.logits(masks).argmax(1) == problem.winner).all()
            if not stands:
                assert not check_sufficient_reason(state, 0, claim)
                refused += 1
    assert refused > 10


@given(states())
def test_certificates_survive_json(state: CircuitState) -> None:
    reason = sufficient_reason(row_problem(state, 0))
    if reason is not None:
        again = SufficientReason.from_dict(reason.to_dict())
        assert check_sufficient_reason(state, 0, again)


@given(states(most=8))
def test_a_proved_flip_set_is_the_smallest(state: CircuitState) -> None:
    problem = row_problem(state, 0)
    surely, perhaps = smallest_flips(problem), smallest_flips(problem, ties=True)
    found = flip_set(problem, optimal=True, time_limit=60)
    if found.impossible:
        assert perhaps is None
    if perhaps is None:
        assert found.coordinates is None
        assert found.impossible
    if found.coordinates is None:
        assert surely is None
        return
    x = (~np.isin(problem.coordinates, found.coordinates)).astype(float)
    assert int(problem.logits(x).argmax()) == found.becomes != problem.winner
    assert found.at_least <= (perhaps or 0) <= len(found.coordinates)
    if found.optimal:
        assert len(found.coordinates) == perhaps == found.at_least
    else:
        assert surely != perhaps  # only a set that comes to a tie keeps it from being proved


def test_a_removal_that_ends_in_a_tie_is_not_called_impossible() -> None:
    state = make_state(2, 2, 1, kind="linear", hidden_bias=False, seed=0)
    with torch.no_grad():
        state.head.weight.copy_(torch.tensor([[0.0, 1.0], [0.0, 1.0]]))
        state.head.bias.zero_()
        state = state.with_open_words(state.open_words)
    found = flip_set(row_problem(state, 0), optimal=True)
    assert not found.impossible
    assert not found.optimal
    gone = state.with_open_words(state.open_words.scaled(torch.zeros(2)))
    assert int(gone.predicted[0]) != int(state.predicted[0])


def test_a_text_without_open_words_cannot_be_flipped() -> None:
    state = make_state(3, 2, 2, kind="mlp", hidden_bias=False, seed=0)
    empty = state.with_open_words(state.open_words.subset(torch.zeros(3) > 0))
    assert flip_set(row_problem(empty, 0), optimal=True).impossible


@given(states(most=8))
def test_a_greedy_flip_set_flips_and_claims_no_more_than_it_knows(state: CircuitState) -> None:
    problem = row_problem(state, 0)
    found, smallest = flip_set(problem), smallest_flips(problem)
    if found.coordinates is None:
        assert not found.impossible or smallest is None
        return
    x = (~np.isin(problem.coordinates, found.coordinates)).astype(float)
    assert int(problem.logits(x).argmax()) == found.becomes != problem.winner
    assert smallest is not None
    assert found.at_least <= smallest <= len(found.coordinates)
    if found.optimal:
        assert len(found.coordinates) == smallest


def test_when_the_time_is_up_the_answer_says_so() -> None:
    state = make_state(60, 3, 48, kind="mlp", hidden_bias=True, seed=3)
    with torch.no_grad():
        state.head.b2[int(state.predicted[0])] += 10.0  # several words have to go
        state = state.with_open_words(state.open_words)
    problem = row_problem(state, 0)
    found = flip_set(problem, optimal=True, time_limit=0.02)
    assert found.coordinates is not None
    assert len(found.coordinates) > 1
    assert not found.optimal
    assert 1 <= found.at_least <= len(found.coordinates)


def test_a_hundred_open_words_are_certified_in_fifty_milliseconds() -> None:
    """The search alone, best of several; docs/results.md has the figure of the real model."""
    import time

    problem = row_problem(make_state(100, 2, 64, kind="mlp", hidden_bias=False, seed=1), 0)
    best = np.inf
    for _ in range(5):
        start = time.process_time()
        assert sufficient_reason(problem) is not None
        best = min(best, time.process_time() - start)
    assert best < 0.05


def test_bad_arguments() -> None:
    state = make_state(3, 2, 2, kind="mlp", hidden_bias=False, seed=0)
    with pytest.raises(ValueError, match="row is 4; expected 0 to 0"):
        row_problem(state, 4)
    with pytest.raises(ValueError, match="time_limit is 0"):
        flip_set(row_problem(state, 0), optimal=True, time_limit=0)
