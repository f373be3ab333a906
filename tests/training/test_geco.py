"""GECO: the constraint holds the task loss, and every number of its state survives a checkpoint."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lexical_sae.training.geco import GECOController, quantile, relaxation

values = st.lists(st.floats(0, 10), min_size=1, max_size=60)


@given(values, st.floats(0, 1))
def test_quantile_is_numpys(given_values: list[float], q: float) -> None:
    assert quantile(given_values, q) == pytest.approx(np.quantile(given_values, q), abs=1e-9)


def test_bound_is_the_lower_quartile_of_the_last_fifty() -> None:
    geco = GECOController(100)
    for ce in [9.0] * 30 + [i / 50 for i in range(50)]:
        geco.warm_up(ce)
    geco.start()
    assert geco.bound == pytest.approx(np.quantile([i / 50 for i in range(50)], 0.25))


def test_first_dual_steps_by_hand() -> None:
    geco = GECOController(3)  # η = 1/2
    geco.start(bound=0.5)
    assert geco.update(1.5) == pytest.approx(math.exp(0.5 * 1.0))  # first excess copied
    excess = 0.5 * 1.0 + 0.5 * (0.3 - 0.5)
    assert geco.update(0.3) == pytest.approx(math.exp(0.5 + 0.5 * excess))


@given(st.lists(st.floats(0, 100), min_size=1, max_size=200), st.floats(0.01, 5))
def test_the_multiplier_stays_within_its_clamp(losses: list[float], bound: float) -> None:
    geco = GECOController(1, target_words=10)
    geco.start(bound)
    for ce in losses:
        geco.update(ce, open_words=12)
        assert math.exp(-5) <= geco.multiplier <= math.exp(5)


def test_it_solves_a_constrained_problem() -> None:
    """minimise x² + … subject to ce(x) = 1/x ≤ 0.5: the solution is x = 2."""
    geco = GECOController(9)
    geco.start(bound=0.5)
    x = 0.5
    for _ in range(4000):
        ce = 1 / x
        gradient = 2 * x - geco.multiplier / x**2
        x = max(0.1, x - 0.01 * gradient)
        geco.update(ce)
    assert x == pytest.approx(2, rel=0.02)


@pytest.mark.parametrize(
    ("open_words", "expected"),
    [(10, 1.0), (30, 1.0), (30 * math.e, 1.5), (3000, 1.5), (30 * math.e**0.5, 1.25)],
)
def test_the_bound_is_relaxed_while_too_dense(open_words: float, expected: float) -> None:
    assert relaxation(open_words, 30) == pytest.approx(expected)
    geco = GECOController(10, target_words=30)
    geco.start(0.4)
    assert geco.relaxed_bound(open_words) == pytest.approx(0.4 * expected)
    assert geco.relaxed_bound(None) == 0.4


def test_state_survives_json() -> None:
    one, other = GECOController(7, target_words=5), GECOController(7, target_words=5)
    for ce in (0.7, 0.5, 0.61):
        one.warm_up(ce)
    one.start()
    one.update(0.33, 9)
    other.load_state_dict(json.loads(json.dumps(one.state_dict())))
    for ce in (0.2, 0.9, 0.123456789):
        assert one.update(ce, 7) == other.update(ce, 7)


def test_bad_numbers_are_told() -> None:
    with pytest.raises(ValueError, match="steps_per_epoch is 0"):
        GECOController(0)
    geco = GECOController(5)
    with pytest.raises(ValueError, match="No warm-up step"):
        geco.start()
    with pytest.raises(ValueError, match="call start"):
        geco.update(1.0)
    geco.start(1.0)
    with pytest.raises(ValueError, match="The loss is nan; training cannot go on"):
        geco.update(float("nan"))
