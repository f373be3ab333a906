"""Rates, gaps and AUCs of groups, against scikit-learn and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from lexical_sae.surgery.fairness import evaluate_bias, mean_fpr_gap
from lexical_sae.surgery.groups import (
    frames_of,
    groups_of_column,
    groups_of_shares,
    groups_of_terms,
)
from lexical_sae.surgery.rates import auc, bootstrap_weights, share
from lexical_sae.text.dataset import TextDataset


@given(st.integers(0, 2**31), st.integers(2, 40), st.booleans())
def test_the_auc_is_scikit_learns_with_weights_and_ties(seed: int, rows: int, tied: bool) -> None:
    draw = np.random.default_rng(seed)
    scores = draw.integers(0, 4, rows) / 4 if tied else draw.random(rows)
    positive = draw.random(rows) < 0.5
    positive[:2] = [True, False]
    weights = draw.integers(1, 4, (3, rows)).astype(np.float32)
    found = auc(scores.astype(np.float64), positive, weights)
    expected = [roc_auc_score(positive, scores, sample_weight=row) for row in weights]
    assert found == pytest.approx(expected)


def test_rates_by_hand() -> None:
    scores = np.array([0.9, 0.2, 0.8, 0.1, 0.7, 0.3, 0.6, 0.4])
    positive = np.array([1, 0, 0, 0, 1, 1, 0, 0], dtype=bool)
    group = np.array([1, 1, 1, 0, 0, 0, 0, 0], dtype=bool)
    found = evaluate_bias(scores, positive, {"g": group})
    assert found.fpr.value == pytest.approx(2 / 5)
    assert found.fnr.value == pytest.approx(1 / 3)
    assert found.accuracy.value == pytest.approx(5 / 8)
    (one,) = found.groups
    assert one.fpr.value == pytest.approx(1 / 2)
    assert one.fpr_gap.value == pytest.approx(1 / 2 - 2 / 5)
    assert one.fnr.value == 0
    bpsn = (group & ~positive) | (~group & positive)
    bnsp = (group & positive) | (~group & ~positive)
    assert one.bpsn_auc.value == pytest.approx(roc_auc_score(positive[bpsn], scores[bpsn]))
    assert one.bnsp_auc.value == pytest.approx(roc_auc_score(positive[bnsp], scores[bnsp]))
    assert one.subgroup_auc.value == pytest.approx(roc_auc_score(positive[group], scores[group]))
    assert found.mean_fpr_gap.value is None  # three rows are no group
    assert "no group has 30 rows" in found.mean_fpr_gap.why


def test_the_mean_gap_has_an_interval_that_holds_it() -> None:
    draw = np.random.default_rng(1)
    rows, places = 4000, draw.integers(0, 50, 4000)
    scores, positive = draw.random(rows), draw.random(rows) < 0.1
    groups = {str(g): places == g for g in range(50)} | {"few": np.arange(rows) < 20}
    found = evaluate_bias(scores, positive, groups).mean_fpr_gap
    assert found.value == pytest.approx(mean_fpr_gap(scores >= 0.5, positive, groups))
    assert found.low is not None
    assert found.high is not None
    assert found.value is not None
    assert 0 <= found.low <= found.value <= found.high
    without = {name: rows for name, rows in groups.items() if name != "few"}
    assert found.value == pytest.approx(mean_fpr_gap(scores >= 0.5, positive, without))


def test_small_groups_get_an_interval_and_no_verdict() -> None:
    draw = np.random.default_rng(0)
    scores, positive = draw.random(400), draw.random(400) < 0.3
    scores[:100] += (0.5 * ~positive[:100]).astype(float)  # flagged too often
    groups = {"flagged": np.arange(400) < 100, "few": np.arange(400) >= 380}
    found = evaluate_bias(np.clip(scores, 0, 1), positive, groups)
    flagged, few = found.groups
    assert flagged.verdict == "flagged more often than others"
    assert flagged.fpr_gap.low is not None
    assert flagged.fpr_gap.low > 0
    assert few.verdict.startswith("no verdict: 20 rows")
    assert few.fpr_gap.low is not None
    assert found.worst_group == "flagged"


def test_what_cannot_be_counted_is_undefined() -> None:
    found = evaluate_bias(
        np.array([0.1, 0.9]), np.array([False, True]), {"g": np.array([0, 1]) > 0}
    )
    assert found.groups[0].fpr.value is None
    assert found.groups[0].subgroup_auc.value is None
    assert found.worst_group is None
    assert np.isnan(share(np.array([True]), np.array([False]), np.ones((1, 1), np.float32)))[0]


def test_groups_from_columns_and_terms() -> None:
    data = TextDataset(
        *("d", "test", "classification", ("a", "b")),
        texts=["gays here", "nothing", "Muslims and a jew, women"],
        labels=[0, 1, 0],
        extra={
            "target": [["Gay", float("nan")], [], ["Islam", "Jewish"]],
            "one": ["x", np.float32("nan"), "y"],
        },
    )
    found = groups_of_column(data, "target")
    assert {name: rows.tolist() for name, rows in found.items()} == {
        "Gay": [True, False, False],
        "Islam": [False, False, True],
        "Jewish": [False, False, True],
    }
    assert groups_of_column(data, "one")["x"].tolist() == [True, False, False]
    words = {"religion": ["muslim", "jew"], "other": ["jewel"], "gender": ["woman"]}
    terms = groups_of_terms(data.texts, {**words, "phrase": ["a jew"]})
    assert terms["religion"].tolist() == [False, False, True]
    assert terms["gender"].tolist() == terms["phrase"].tolist() == [False, False, True]
    assert not terms["other"].any()
    assert groups_of_terms(data.texts, words, exact=True)["gender"].tolist() == [False] * 3
    with pytest.raises(ValueError, match="has no column 'group'; it has: one, target"):
        groups_of_column(data, "group")


def test_groups_from_shares() -> None:
    data = TextDataset(
        *("d", "test", "classification", ("a", "b")),
        texts=["a", "b", "c"],
        labels=[0, 1, 0],
        extra={"male": [0.5, None, 0.2], "female": [1, 0, float("nan")], "name": ["x", "y", "z"]},
    )
    found = groups_of_shares(data, ["male", "female"])
    assert found["male"].tolist() == found["female"].tolist() == [True, False, False]
    with pytest.raises(ValueError, match=r"'name' of d holds 'x'; expected numbers"):
        groups_of_shares(data, ["name"])
    with pytest.raises(ValueError, match=r"holds shares such as 0.5; expected names of groups"):
        groups_of_column(data, "male")


def test_texts_that_differ_in_their_group_are_one_frame() -> None:
    texts = ["Ann is a gay man", "Ann is a deaf man", "Bob is a gay man", "ann is a gay man"]
    values = ["gay", "deaf", ["gay"], None]
    assert frames_of(texts, values).tolist() == [0, 0, 1, 2]
    assert frames_of(texts).tolist() == [0, 1, 2, 0]


def test_rows_of_a_frame_are_drawn_together() -> None:
    frames = np.array([0, 1, 0, 2, 1, 2])
    weights = bootstrap_weights(6, 50, 0, frames)
    assert (weights[0] == 1).all()
    for frame in range(3):
        same = weights[:, frames == frame]
        assert (same[:, 0] == same[:, 1]).all()
    assert (weights.sum(1) == 6).all()
    # twenty copies of each row say no more than the rows themselves
    draw = np.random.default_rng(0)
    scores, positive, rows = draw.random(90), draw.random(90) < 0.3, np.arange(90) < 45
    once = evaluate_bias(scores, positive, {"g": rows}).fpr
    parts = (np.repeat(part, 20) for part in (scores, positive, rows))
    many_scores, many_positive, many_rows = parts
    frames = np.repeat(np.arange(90), 20)
    many = evaluate_bias(many_scores, many_positive, {"g": many_rows}, frames=frames).fpr
    assert (many.value, many.low, many.high) == pytest.approx((once.value, once.low, once.high))


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="No groups were given"):
        evaluate_bias(np.ones(2), np.ones(2, bool), {})
    with pytest.raises(ValueError, match="Group 'g' has shape"):
        evaluate_bias(np.ones(2), np.ones(2, bool), {"g": np.ones(3, bool)})
    with pytest.raises(ValueError, match="expected one of each per row"):
        evaluate_bias(np.ones(2), np.ones(3, bool), {"g": np.ones(2, bool)})
