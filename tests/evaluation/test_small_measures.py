"""Calibration, plausibility, stability, layers, autoencoders, drift: against their definitions."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import torch
from torch import nn

from lexical_sae.evaluation.bootstrap import (
    RESAMPLES,
    mean_estimate,
    paired_p_value,
    ratio_estimate,
    runs_difference,
    runs_estimate,
)
from lexical_sae.evaluation.calibration import confidence_bins, expected_calibration_error
from lexical_sae.evaluation.compared import Contest
from lexical_sae.evaluation.drift import pairs_in, share_inside
from lexical_sae.evaluation.layers import find_layers, layer_parts, skipping
from lexical_sae.evaluation.peers import masked_alone
from lexical_sae.evaluation.perturbation import Remembered, limits
from lexical_sae.evaluation.plausibility import agreement, average_precision, token_scores
from lexical_sae.evaluation.plausibility_step import token_spans
from lexical_sae.evaluation.reading import read_texts
from lexical_sae.evaluation.sparse_autoencoder import autoencoder_quality, fit_autoencoder
from lexical_sae.evaluation.stability import movement, with_other_case, with_synonym
from tests.tiny import TEXTS, tiny_model


def test_calibration_error_is_that_of_scikit_learns_curve() -> None:
    calibration = pytest.importorskip("sklearn.calibration")
    draw = np.random.default_rng(0)
    confidence = draw.uniform(0.5, 1.0, 500)
    right = draw.random(500) < confidence**2
    bins = confidence_bins(confidence, right, 10)
    accuracy, mean = calibration.calibration_curve(right, confidence, n_bins=10)
    assert [part.accuracy for part in bins] == pytest.approx(accuracy.tolist())
    assert [part.confidence for part in bins] == pytest.approx(mean.tolist())
    by_hand = sum(p.count * abs(p.accuracy - p.confidence) for p in bins) / 500
    assert expected_calibration_error(bins) == pytest.approx(by_hand)
    assert expected_calibration_error(confidence_bins(np.ones(4), np.ones(4, bool))) == 0
    with pytest.raises(ValueError, match="no decisions"):
        expected_calibration_error([])


@pytest.mark.parametrize("seed", range(5))
def test_average_precision_is_that_of_scikit_learn(seed: int) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    draw = np.random.default_rng(seed)
    marked = draw.random(30) < 0.3
    scores = draw.integers(0, 6, 30).astype(float)  # with ties
    expected = metrics.average_precision_score(marked, scores)
    assert average_precision(marked, scores) == pytest.approx(expected)


def test_agreement_with_marks() -> None:
    perfect = agreement(np.array([False, True, False]), np.array([0.1, 0.9, 0.2]))
    assert perfect is not None
    assert (perfect.auprc, perfect.f1) == (1.0, 1.0)
    assert agreement(np.zeros(3, bool), np.ones(3)) is None
    assert agreement(np.ones(3, bool), np.ones(3)) is None


def test_scores_are_shared_by_characters() -> None:
    text = "a fine-tuned film"
    spans = token_spans(text, ["a", "fine-tuned", "film"])
    assert spans == [(0, 1), (2, 12), (13, 17)]
    words = [(0, 1, 0.5), (2, 6, 1.0), (6, 7, 0.25), (7, 12, 1.0), (13, 17, -1.0)]
    assert token_scores(spans, words).tolist() == [0.5, 2.25, -1.0]
    assert token_spans(text, ["a", "movie"]) is None


def test_changes_that_mean_nothing() -> None:
    assert with_synonym("A great film.") == "An excellent film."
    assert with_synonym("such an excellent film") == "such a great film"
    assert with_synonym("the plan: great") == "the plan: excellent"
    assert with_synonym("Funny!") == "Amusing!"
    assert with_synonym("Nothing here.") is None
    assert with_other_case("A Film") == "a film"
    assert with_other_case("a film") == "A FILM"


def test_movement_is_zero_for_the_same_and_two_for_the_opposite() -> None:
    scores = np.array([1.0, -2.0, 0.5])
    still, turned = movement(scores, 3 * scores), movement(scores, -scores)
    assert still is not None
    assert turned is not None
    assert (still.distance, still.top_kept) == (pytest.approx(0.0), 1.0)
    assert turned.distance == pytest.approx(2.0)
    assert movement(scores, np.zeros(3)) is None


@pytest.mark.parametrize("family", ["bert", "distilbert", "modernbert", "roberta"])
def test_the_parts_of_the_layers_add_up_to_the_logit(family: str) -> None:
    model = tiny_model(family)
    read = model.encode(TEXTS[:6]).model_inputs()
    found = layer_parts(model, **read)
    assert found.parts.shape == (6, 2 + len(find_layers(model.backbone)))
    assert float(found.residual.max()) < 1e-5
    with skipping([find_layers(model.backbone)[0]]), torch.no_grad():
        without = model.classify(**read)
    plain = model.classify(**read)
    decided = plain.predicted[:, None]
    change = (without.logits - plain.logits.detach()).gather(1, decided)[:, 0]
    assert torch.allclose(found.skipped[:, 0], change, atol=1e-6)
    assert not find_layers(model.backbone)[0]._forward_hooks


@pytest.mark.parametrize("kind", ["topk", "jumprelu"])
def test_an_autoencoder_restores_what_is_sparse_and_says_what_it_loses(kind: str) -> None:
    torch.manual_seed(0)
    atoms = nn.functional.normalize(torch.randn(24, 16), dim=1)
    code = torch.relu(torch.randn(1200, 24)) * (torch.rand(1200, 24) < 0.1)
    x = code @ atoms
    model = fit_autoencoder(x[:1000], kind, latents=48, k=6)  # type: ignore[arg-type]
    head = nn.Linear(16, 2)
    found = autoencoder_quality(model, head, x[:1000], x[1000:], torch.zeros(200, dtype=torch.long))
    assert found.unexplained < 0.35
    assert found.open_features <= 12
    assert 0 <= found.dead < 1
    assert found.agreement > 0.7
    again = fit_autoencoder(x[:1000], kind, latents=48, k=6)  # type: ignore[arg-type]
    assert torch.equal(model.decoder, again.decoder)
    with pytest.raises(ValueError, match="k is 0"):
        fit_autoencoder(x, kind, latents=4, k=0)  # type: ignore[arg-type]


def test_overlap_with_itself_is_whole_and_with_nothing_is_none() -> None:
    reading = read_texts(tiny_model("bert"), TEXTS[:5], [0] * 5)
    words = reading.state.open_words
    assert pairs_in(words, words).all()
    none = words.subset(torch.zeros(len(words), dtype=torch.bool))
    assert not pairs_in(words, none).any()
    shares = share_inside(words.value, pairs_in(words, words), words)
    assert torch.allclose(shares, torch.ones(5, dtype=torch.float64))


def test_intervals_hold_the_mean_and_equal_pairs_have_no_difference() -> None:
    values = np.random.default_rng(0).normal(1.0, 1.0, 400)
    found = mean_estimate(values)
    assert found.low is not None
    assert found.high is not None
    assert found.low < values.mean() < found.high
    assert found.high - found.low == pytest.approx(2 * 1.96 * values.std() / 20, rel=0.1)
    assert mean_estimate([]).value is None
    assert paired_p_value(values, values) == 1.0
    assert paired_p_value(values + 0.5, values) < 0.01
    assert paired_p_value(values, np.random.default_rng(1).permutation(values)) > 0.05
    with pytest.raises(ValueError, match="expected pairs"):
        paired_p_value([1.0], [1.0, 2.0])


def slow_interval(runs: np.ndarray, wholes: np.ndarray) -> list[float]:
    """Seeds drawn, rows drawn, and every drawn seed read on every drawn row."""
    draw, found = np.random.default_rng(0), []
    seeds, n = runs.shape
    for _ in range(RESAMPLES):
        chosen, rows = draw.integers(0, seeds, seeds), draw.integers(0, n, n)
        part = sum(runs[s, r] for s in chosen for r in rows)
        found.append(part / sum(wholes[r] for _ in chosen for r in rows))
    return np.quantile(found, [0.025, 0.975]).tolist()


@pytest.mark.parametrize("tagged", [False, True])
def test_several_seeds_are_drawn_beside_the_rows(tagged: bool) -> None:
    draw = np.random.default_rng(3)
    wholes = draw.integers(1, 9, 12).astype(float) if tagged else np.ones(12)
    runs = draw.integers(0, wholes + 1, (3, 12)).astype(float)
    found = runs_estimate(runs, wholes if tagged else None)
    assert found.value == pytest.approx(runs.sum() / (3 * wholes.sum()))
    assert [found.low, found.high] == pytest.approx(slow_interval(runs, wholes))


def test_one_seed_has_the_interval_of_its_rows() -> None:
    row = np.random.default_rng(0).integers(0, 2, 50).astype(float)
    assert runs_estimate(row[None]) == mean_estimate(row)
    tags = np.full(50, 2.0)
    assert runs_estimate(row[None], tags) == ratio_estimate(row, tags)
    assert runs_estimate(np.zeros((2, 0))).value is None


def test_a_difference_of_one_seed_only_may_be_chance() -> None:
    """On every second row the first of four seeds is better; rows alone would call that certain."""
    ours, theirs = np.zeros((4, 200)), np.zeros((4, 200))
    ours[0, ::2] = 1.0
    found = runs_difference(ours, theirs)
    assert found is not None
    assert (found.value, found.seeds) == (0.125, 4)
    assert found.p < 0.01
    assert found.low == 0 < found.high
    assert found.may_be_chance
    ours[:, ::2] = 1.0  # now of all seeds
    found = runs_difference(ours, theirs)
    assert found is not None
    assert not found.may_be_chance
    assert runs_difference(ours, theirs[:, :100]) is None


def test_a_paired_test_of_many_rows_is_held_in_parts() -> None:
    draw = np.random.default_rng(0)
    few, other = draw.normal(0.02, 1.0, 3000), np.zeros(3000)
    signs = np.random.default_rng(0).integers(0, 2, (2000, 3000)) * 2.0 - 1.0
    moved = np.abs(signs @ few) >= abs(few.sum())
    assert paired_p_value(few, other) == (1 + moved.sum()) / 2001
    many = draw.normal(0, 1.0, 100_000)
    tracemalloc.start()
    paired_p_value(many, np.zeros(100_000))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 100 * 2**20


def test_a_contest_compares_on_the_texts_of_both_and_names_what_is_the_same() -> None:
    contest = Contest("ours")
    for seed in range(20):
        weights = np.random.default_rng(seed).random(5)

        def game(masks: np.ndarray, weights: np.ndarray = weights) -> np.ndarray:
            return masks @ weights

        scorers = {"ours": lambda w=weights: w, "twice": lambda w=weights: w}
        if seed % 2:
            scorers["reversed"] = lambda w=weights: -w
        contest.add(game, limits(game, 5), scorers)
    table = contest.table("t")
    rows = {row[0]: row for row in table.rows}
    assert rows["ours"][2] == pytest.approx(1.0)
    assert "twice (the same numbers as ours)" in rows
    assert rows["reversed"][1] == 10
    assert rows["reversed"][2] == pytest.approx(0.0)
    assert rows["reversed"][5] < 0.01
    assert contest.ahead() == {}


def test_without_limits_the_orders_tried_are_the_limits() -> None:
    weights = np.array([3.0, 2.0, 1.0])
    contest = Contest("sorted")
    scorers = {"sorted": lambda: weights, "mixed": lambda: np.array([2.0, 3.0, 1.0])}
    contest.add(lambda masks: masks @ weights, None, scorers)
    assert contest.naopc["sorted"] == [1.0]  # and its reverse is the worst of those tried
    assert 0.0 < contest.naopc["mixed"][0] < 1.0
    assert masked_alone(lambda masks: masks @ weights, 3) == pytest.approx(weights)


def test_a_remembered_game_is_the_game_and_is_played_once_for_each_set() -> None:
    weights = np.random.default_rng(0).random(12)
    played: list[bytes] = []

    def game(masks: np.ndarray) -> np.ndarray:
        played.extend(mask.tobytes() for mask in masks)
        return np.sin(masks @ weights)

    plain = limits(game, 12, beam=3)
    assert len(played) > len(set(played))
    played.clear()
    assert limits(Remembered(game), 12, beam=3) == plain
    assert len(played) == len(set(played))


def test_without_the_top_words_decisions_flip_as_the_head_says() -> None:
    """Five of ten words vote for the label, which needs three of them."""
    contest = Contest("good")
    for _ in range(4):
        weights = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0])
        contest.add(
            lambda masks, w=weights: masks @ w / 5,
            None,
            {"good": lambda w=weights: w, "bad": lambda w=weights: -w},
            lambda masks, w=weights: masks @ w > 2.5,
        )
    table = contest.removability("Explainers")
    assert table.title == "Explainers, without their top 5 words"
    rows = {row[0]: row for row in table.rows}
    assert rows["good"][1:6] == (4, 100.0, 100.0, 100.0, 1.0)
    assert rows["bad"][1:6] == (4, 0.0, 0.0, 0.0, 0.0)
    assert [row[0] for row in table.rows] == ["good", "bad"]
