"""Invariant 3: word, span and subword views preserve the sum, for every tokenizer."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lexical_sae.attribution.contributions import compute_attribution_tensor
from lexical_sae.attribution.words import (
    aggregate_subword_attributions,
    position_contributions,
    span_contributions,
)
from tests.tiny import TEXTS, tiny_model

MODELS = {
    (family, pooling): tiny_model(family, pooling=pooling)
    for family in ("bert", "roberta", "deberta-v2")
    for pooling in ("max", "attention")
}
words = st.sampled_from([w for text in TEXTS for w in text.split()] + ["unseen", "Ünïcode", "😀"])
sentences = st.one_of(st.lists(words, max_size=12).map(" ".join), st.text(max_size=40))


@pytest.mark.parametrize("kind", MODELS, ids="-".join)
@settings(deadline=None, max_examples=25)
@given(texts=st.lists(sentences, min_size=1, max_size=3), data=st.data())
def test_every_view_adds_up_to_the_logit(
    kind: tuple[str, str], texts: list[str], data: st.DataObject
) -> None:
    model = MODELS[kind].double()
    encoded = model.encode(texts)
    state = model.classify(**encoded.model_inputs())
    label = data.draw(st.integers(0, 2))
    attribution = compute_attribution_tensor(state, label)
    by_position = position_contributions(state, attribution, encoded.input_ids.shape[1])
    expected = (state.logits - state.b_eff)[:, label].detach()
    torch.testing.assert_close(by_position.sum(1), expected)
    for row, text in enumerate(texts):
        total = float(expected[row])
        found = aggregate_subword_attributions(encoded, row, by_position[row])
        assert sum(word.score for word in found) == pytest.approx(total, abs=1e-9)
        for word in found:
            assert word.text == text[word.start : word.end]
        peaks = aggregate_subword_attributions(encoded, row, by_position[row], "max_abs")
        assert [p.text for p in peaks] == [w.text for w in found]
        if text:
            cut = data.draw(st.integers(0, len(text)))
            spans = [(a, z) for a, z in ((0, cut), (cut, len(text))) if a < z]
            scores, rest = span_contributions(encoded, row, by_position[row], spans)
            assert sum(s.score for s in scores) + rest == pytest.approx(total, abs=1e-9)


def test_words_are_shown_as_in_the_text() -> None:
    model = MODELS["bert", "max"]
    encoded = model.encode(["The films, gorgeous!"])
    scores = torch.zeros(encoded.input_ids.shape[1])
    shown = aggregate_subword_attributions(encoded, 0, scores)
    assert [word.text for word in shown] == ["The", "films", ",", "gorgeous", "!"]


def test_max_abs_keeps_the_sign_of_the_largest_subword() -> None:
    model = MODELS["bert", "max"]
    encoded = model.encode(["films"])  # film + ##s
    assert encoded.word_ids[0] == (None, 0, 0, None)
    scores = torch.tensor([0.0, 0.7, -0.8, 0.0])
    (word,) = aggregate_subword_attributions(encoded, 0, scores, "max_abs")
    assert word.score == pytest.approx(-0.8)
    (word,) = aggregate_subword_attributions(encoded, 0, scores)
    assert word.score == pytest.approx(-0.1)


def test_bad_requests_are_refused() -> None:
    model = MODELS["bert", "max"]
    encoded = model.encode(["the film"])
    state = model.classify(**encoded.model_inputs())
    scores = torch.zeros(encoded.input_ids.shape[1])
    with pytest.raises(ValueError, match="method is 'mean'; expected one of sum, max_abs"):
        aggregate_subword_attributions(encoded, 0, scores, "mean")
    with pytest.raises(ValueError, match=r"The span \(3, 99\) is not inside the text of 8"):
        span_contributions(encoded, 0, scores, [(3, 99)])
    with pytest.raises(ValueError, match="expected one number for each"):
        position_contributions(state, torch.zeros(10**4), 5)
    tagged = model.tag(**encoded.model_inputs())
    with pytest.raises(ValueError, match="is for documents"):
        position_contributions(tagged, tagged.open_words.value, 5)
    with pytest.raises(ValueError, match="Class 7 does not exist; expected 0 to 2"):
        compute_attribution_tensor(state, 7)
    with pytest.raises(ValueError, match="row_classes has 5 entries"):
        compute_attribution_tensor(state, row_classes=torch.zeros(5, dtype=torch.long))
