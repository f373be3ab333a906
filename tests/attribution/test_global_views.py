"""Overview, scorecards, atlas, diff and golden explanations."""

from __future__ import annotations

import json

import pytest
import torch

from lexical_sae import LexicalSAE, assert_explanation, explain, explain_many
from lexical_sae.attribution.atlas import linear_regions, region_scorecards
from lexical_sae.attribution.diff import diff_explanations, diff_models
from lexical_sae.attribution.overview import class_overview, linear_scorecard
from tests.tiny import TEXTS, tiny_model

SOME = TEXTS[:60]


@pytest.fixture(scope="module")
def model() -> LexicalSAE:
    return tiny_model("bert")


@pytest.fixture(scope="module")
def other() -> LexicalSAE:
    changed = tiny_model("bert")
    with torch.no_grad():
        changed.head.W1.mul_(1.1)
        changed.head.b2 += 0.2
    return changed


def test_the_overview_adds_up_what_the_explanations_say(model: LexicalSAE) -> None:
    explanations = explain_many(model, SOME)
    found = class_overview(explanations, model.config.labels, top=10**6)
    assert sum(view.texts for view in found) == len(SOME)
    for view in found:
        about = [e for e in explanations if e.label == view.label]
        for role in view.words[:10]:
            parts = [w.contribution for e in about for w in e.vocabulary if w.word == role.word]
            assert role.texts == len(parts)
            assert role.total == pytest.approx(sum(parts))
            assert all(
                any(role.word == w.word for w in e.vocabulary)
                for e in about
                if e.text in role.examples
            )
            assert 1 <= len(role.examples) <= 3
        if view.words:
            assert sum(role.share for role in view.words) == pytest.approx(1)
            shares = [role.share for role in view.words]
            assert shares == sorted(shares, reverse=True)


def test_a_linear_head_is_its_scorecard() -> None:
    model = tiny_model("bert", head="linear")
    cards = {card.label: card for card in linear_scorecard(model)}
    for explanation in explain_many(model, SOME[:5]):
        points = dict(cards[explanation.label].points)
        for word in explanation.vocabulary:
            assert word.contribution == pytest.approx(word.activation * points[word.word], abs=1e-5)
    with pytest.raises(ValueError, match="Only a linear head has one scorecard"):
        linear_scorecard(tiny_model("bert"))
    with pytest.raises(ValueError, match="Only an MLP head has regions"):
        linear_regions(model, [])


@pytest.mark.parametrize("hidden_bias", [False, True])
def test_in_its_region_a_scorecard_gives_the_logits(hidden_bias: bool) -> None:
    model = tiny_model("bert", hidden_bias=hidden_bias)
    with torch.no_grad():
        state = model.classify(**model.encode(SOME).model_inputs())
    atlas = linear_regions(model, [state], regions=5, top=None)
    assert atlas.texts == len(SOME)
    assert sum(region.texts for region in atlas.regions) <= len(SOME)
    masks = (model.head.hidden(state.open_words) > 0).tolist()
    dense = state.sparse_vector
    for region in atlas.regions:
        wanted = [on == "1" for on in region.mask]
        rows = [i for i, mask in enumerate(masks) if mask == wanted]
        assert len(rows) == region.texts
        for c, card in enumerate(region.scorecards):
            points = dict(card.points)
            weights = torch.tensor([points[word] for word in model.dictionary.words])
            logits = dense[rows] @ weights + card.bias
            torch.testing.assert_close(logits, state.logits[rows, c], atol=1e-4, rtol=1e-4)
    assert len(region_scorecards(model, torch.ones(len(masks[0])), 3)[0].points) == 3


def test_a_diff_is_exact_word_by_word(model: LexicalSAE, other: LexicalSAE) -> None:
    found = diff_models(model, other, SOME[:20])
    for text in found.texts:
        assert text.residual < 1e-5
        assert 0 <= text.moved <= 1
    assert found.mean_moved > 0
    same = diff_models(model, model, SOME[:5])
    assert same.mean_moved == 0
    assert same.flipped == 0
    assert all(not text.words for text in same.texts)


def test_diffs_of_different_things_are_refused(model: LexicalSAE) -> None:
    with pytest.raises(ValueError, match="different texts or labels"):
        diff_explanations(explain(model, SOME[0]), explain(model, SOME[1]))
    with pytest.raises(ValueError, match="different labels"):
        diff_models(model, tiny_model("bert", labels=["no", "yes"]), SOME[:2])


def test_golden_explanations_hold_and_break(model: LexicalSAE, other: LexicalSAE, tmp_path) -> None:
    golden = explain(model, SOME[0]).to_dict()
    assert_explanation(model, SOME[0], golden)
    file = tmp_path / "golden.json"
    file.write_text(json.dumps(golden))
    assert_explanation(model, SOME[0], file)
    with pytest.raises(AssertionError, match=r"has changed: .*logit is"):
        assert_explanation(other, SOME[0], golden)
    assert_explanation(other, SOME[0], golden, value_tolerance=10)
    swapped = {**golden, "vocabulary": golden["vocabulary"][::-1]}
    if len(golden["vocabulary"]) > 2:
        with pytest.raises(AssertionError, match="is at place"):
            assert_explanation(model, SOME[0], swapped)
        assert_explanation(model, SOME[0], swapped, rank_tolerance=10**6)
    missing = {**golden["vocabulary"][0], "word": "nowhere"}
    with pytest.raises(AssertionError, match="'nowhere' no longer contributes"):
        assert_explanation(model, SOME[0], {**golden, "vocabulary": [missing]})
