"""AOPC, its limits and ERASER's measures against their definitions, written out."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lexical_sae.evaluation.perturbation import (
    Floats,
    Game,
    Masks,
    falling,
    limits,
    removal,
    removal_masks,
    top_count,
)
from lexical_sae.evaluation.reading import spread


def table_game(n: int, seed: int) -> Game:
    """Any function of subsets at all."""
    values = np.random.default_rng(seed).random(2**n)

    def play(masks: Masks) -> Floats:
        found: Floats = values[(masks * 2 ** np.arange(n)).sum(1)]
        return found

    return play


def additive_game(weights: Floats) -> Game:
    return lambda masks: masks @ weights


def plain_aopc(game: Game, order: tuple[int, ...]) -> float:
    n = len(order)
    whole = game(np.ones((1, n), dtype=bool))[0]
    lost = []
    for i in range(1, n + 1):
        mask = np.array([[feature not in order[:i] for feature in range(n)]])
        lost.append(whole - game(mask)[0])
    return float(np.mean(lost))


@given(st.integers(1, 5), st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_exact_limits_are_those_of_all_orders(n: int, seed: int) -> None:
    game = table_game(n, seed)
    every = [plain_aopc(game, order) for order in permutations(range(n))]
    found = limits(game, n)
    assert found.exact
    assert found.low == pytest.approx(min(every), abs=1e-12)
    assert found.high == pytest.approx(max(every), abs=1e-12)
    for order in permutations(range(n)):
        curve = removal(game, order)
        assert curve.aopc == pytest.approx(plain_aopc(game, order), abs=1e-12)
        assert curve.reversed_aopc == pytest.approx(plain_aopc(game, order[::-1]), abs=1e-12)


@given(st.integers(1, 6), st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_a_beam_stays_within_the_exact_limits_and_meets_them_when_wide(n: int, seed: int) -> None:
    game = table_game(n, seed)
    exact = limits(game, n)
    narrow = limits(game, n, beam=2, exact_features=0)
    assert not narrow.exact
    assert exact.low - 1e-12 <= narrow.low <= narrow.high <= exact.high + 1e-12
    wide = limits(game, n, beam=2**n, exact_features=0)
    assert wide.low == pytest.approx(exact.low, abs=1e-12)
    assert wide.high == pytest.approx(exact.high, abs=1e-12)


def test_of_a_sum_the_order_by_its_parts_is_best_and_the_reverse_is_worst() -> None:
    weights = np.array([0.1, 0.4, -0.2, 0.3, 0.05, 0.15, 0.02, 0.01, -0.03, 0.07, 0.06, 0.2])
    game, order = additive_game(weights), falling(weights)
    for found in (limits(game, 12), limits(game, 12, exact_features=12)):
        assert found.normalised(removal(game, order).aopc) == pytest.approx(1.0)
        assert found.normalised(removal(game, order[::-1].copy()).aopc) == pytest.approx(0.0)
        assert found.normalised(removal(game, order).reversed_aopc) == pytest.approx(0.0)


def test_where_every_order_is_the_same_nothing_is_better() -> None:
    found = limits(additive_game(np.ones(4)), 4)
    assert found.normalised(removal(additive_game(np.ones(4)), [0, 1, 2, 3]).aopc) is None


def test_comprehensiveness_and_sufficiency_as_eraser_defines_them() -> None:
    weights = np.array([0.5, 0.2, 0.1, 0.1])
    curve = removal(additive_game(weights), falling(weights))
    # half of four words: the first two
    assert curve.comprehensiveness(0.5) == pytest.approx(0.9 - 0.2)
    assert curve.sufficiency(0.5) == pytest.approx(0.9 - 0.7)
    # one per cent of four words is still one word
    assert curve.comprehensiveness(0.01) == pytest.approx(0.5)
    assert curve.sufficiency(0.01) == pytest.approx(0.4)


def test_masks_and_counts() -> None:
    assert removal_masks([2, 0, 1], 3).tolist() == [
        [True, True, True],
        [True, True, False],
        [False, True, False],
        [False, False, False],
    ]
    assert [top_count(10, f) for f in (0.01, 0.05, 0.1, 0.2, 0.5, 1.0)] == [1, 1, 1, 2, 5, 10]
    with pytest.raises(ValueError, match="no feature"):
        removal(additive_game(np.ones(0)), [])


def test_places_are_spread_over_all_rows() -> None:
    assert spread(3, 5) == [0, 1, 2]
    assert spread(10, 5) == [0, 2, 4, 6, 8]
    assert spread(999, 500)[-1] > 990
    assert spread(0, 5) == []
