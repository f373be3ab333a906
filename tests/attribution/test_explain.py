"""Explanations: exact in every view, the same every time, and refused with a sentence."""

from __future__ import annotations

import dataclasses
import json
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lexical_sae import LexicalSAE, explain, explain_many
from lexical_sae.attribution.words import explain_model_spans
from lexical_sae.model.fingerprint import model_hash
from tests.tiny import TEXTS, tiny_model

MODELS = {
    (family, pooling, bias): tiny_model(family, pooling=pooling, hidden_bias=bias)
    for family, pooling, bias in (
        ("bert", "max", False),
        ("roberta", "max", True),
        ("deberta-v2", "attention", False),
    )
}
words = st.sampled_from([w for text in TEXTS for w in text.split()] + ["unseen", "Ünïcode", "😀"])
sentences = st.one_of(
    st.lists(words, min_size=1, max_size=12).map(" ".join), st.text(min_size=1, max_size=40)
).filter(str.strip)


@pytest.fixture(scope="module")
def model() -> LexicalSAE:
    return MODELS["bert", "max", False]


@pytest.mark.parametrize("kind", MODELS, ids=lambda kind: "-".join(map(str, kind)))
@pytest.mark.parametrize("method", ["contributions", "integrated_gradients"])
@settings(deadline=None, max_examples=20)
@given(texts=st.lists(sentences, min_size=1, max_size=4), data=st.data())
def test_every_view_of_an_explanation_adds_up(
    kind: tuple[str, str, bool], method: str, texts: list[str], data: st.DataObject
) -> None:
    model = MODELS[kind]
    names = list(model.config.labels)
    label = data.draw(st.sampled_from([None, *names]))
    against = data.draw(st.sampled_from([None, *(n for n in names if n != label)]))
    if label is None:
        against = None
    for text, found in zip(
        texts, explain_many(model, texts, label, against, method=method), strict=True
    ):
        assert found.text == text
        scale = 1 + sum(abs(word.contribution) for word in found.vocabulary)
        assert found.residual <= 1e-5 * scale
        for view in (found.words, found.spans):
            total = math.fsum([*(part.score for part in view), found.bias, -found.logit])
            assert abs(total) <= 1e-5 * scale
            assert all(part.text == text[part.start : part.end] for part in view)
            # invariant 7: nothing that contributes nothing is shown as a reason
            assert all(part.score != 0 for part in view)
        assert all(word.contribution != 0 and word.activation > 0 for word in found.vocabulary)
        for word in found.vocabulary:
            assert word.source.text == text[word.source.start : word.source.end]
            assert not word.word.startswith(("##", "Ġ", "▁"))
        assert sum(found.probabilities.values()) == pytest.approx(1)
        assert found.probabilities[found.predicted] == max(found.probabilities.values())


def test_the_json_has_what_was_promised(model: LexicalSAE) -> None:
    found = json.loads(explain(model, TEXTS[0]).to_json())
    for total in (found["words"], found["vocabulary"], found["spans"]):
        parts = sum(part["contribution"] for part in total)
        assert parts + found["bias"] == pytest.approx(found["logit"], abs=1e-4)
    assert {"word", "contribution", "activation", "from"} < set(found["vocabulary"][0])
    assert set(found["vocabulary"][0]["from"]) == {"text", "start", "end"}
    assert set(found["words"][0]) == {"text", "start", "end", "contribution"}
    assert set(found["probabilities"]) == set(model.config.labels)
    assert "sufficient" not in found
    assert "flip" not in found


def test_two_runs_are_bitwise_the_same_and_batches_change_nothing(model: LexicalSAE) -> None:
    together = explain_many(model, TEXTS[:30])
    again = explain_many(model, TEXTS[:30])
    assert [e.to_json() for e in together] == [e.to_json() for e in again]
    for one, text in zip(together[:5], TEXTS, strict=False):
        alone = explain(model, text)
        assert [w.word for w in alone.vocabulary] == [w.word for w in one.vocabulary]
        assert alone.logit == pytest.approx(one.logit, abs=1e-5)


def test_contrastive_is_the_difference_of_the_two(model: LexicalSAE) -> None:
    a, b = model.config.labels[:2]
    first, second, both = (
        explain(model, TEXTS[3], *pair) for pair in ((a, None), (b, None), (a, b))
    )
    assert both.logit == pytest.approx(first.logit - second.logit, abs=1e-5)
    alone = {w.word: w.contribution for w in first.vocabulary}
    other = {w.word: w.contribution for w in second.vocabulary}
    for word in both.vocabulary:
        expected = alone.get(word.word, 0) - other.get(word.word, 0)
        assert word.contribution == pytest.approx(expected, abs=1e-5)


def test_an_explanation_is_frozen_and_names_its_model(model: LexicalSAE, tmp_path) -> None:
    found = explain(model, TEXTS[0])
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.label = "other"  # type: ignore[misc]
    assert found.dictionary_hash == model.dictionary.hash
    model.save_pretrained(tmp_path)
    loaded = LexicalSAE.from_pretrained(tmp_path)
    assert explain(loaded, TEXTS[0]).to_json() == found.to_json()


def test_the_hash_follows_the_weights() -> None:
    model = tiny_model("bert")
    before = model_hash(model)
    assert model_hash(model) == before
    with torch.no_grad():
        model.head.b2[0] += 1e-3
    changed = model_hash(model)
    assert changed != before
    model.suppress([0])
    suppressed = model_hash(model)
    assert suppressed not in (before, changed)
    model.config.labels = model.config.labels[::-1]
    assert model_hash(model) != suppressed
    model.head.b2.data[0] += 1
    assert model_hash(model) not in (before, changed, suppressed)


def test_spans_of_the_caller_and_the_rest_add_up(model: LexicalSAE) -> None:
    text = "the film is lovely. her music is slow and dull."
    found = explain_model_spans(model, text, spans=[(0, 19), (20, 29)])
    total = sum(span.score for span in found.spans) + found.rest + found.bias
    assert total == pytest.approx(found.logit, abs=1e-5)
    assert [span.text for span in found.spans] == ["the film is lovely.", "her music"]
    whole = explain_model_spans(model, text)
    assert sum(span.score for span in whole.spans) + whole.bias == pytest.approx(whole.logit)
    peaks = explain_model_spans(model, text, method="max_abs")
    assert [span.text for span in peaks.spans] == [span.text for span in whole.spans]


def test_bad_requests_get_a_sentence(model: LexicalSAE) -> None:
    a = model.config.labels[0]
    for call, match in (
        (lambda: explain(model, ["a", "b"]), "text is of type list; expected one string"),
        (lambda: explain(model, " "), "expected a text that is not empty"),
        (lambda: explain(model, "film", a[:-1]), f"did you mean '{a}'"),
        (lambda: explain(model, "film", "zzz"), "has no label 'zzz'; expected one of"),
        (lambda: explain(model, "film", a, a), "expected two different labels"),
        (lambda: explain(model, "film", method="shap"), "method is 'shap'; expected one of"),
        (lambda: explain_many(model, ["film"], batch_size=0), "batch_size is 0"),
        (lambda: explain_many(model, ["film"], [a, a]), "2 labels for 1 texts"),
        (lambda: explain_model_spans(model, "film", "zzz"), "has no label 'zzz'"),
    ):
        with pytest.raises(ValueError, match=match):
            call()


def test_against_the_predicted_label_its_runner_up_is_explained(model: LexicalSAE) -> None:
    predicted = explain(model, TEXTS[0]).predicted
    found = explain(model, TEXTS[0], against=predicted)
    assert (found.against, found.predicted) == (predicted, predicted)
    ranked = sorted(found.probabilities, key=lambda name: -found.probabilities[name])
    assert found.label == ranked[1]
    assert found.logit < 0


def test_a_text_that_opens_nothing_is_its_bias() -> None:
    model = tiny_model("bert")
    model.suppress(range(len(model.dictionary)))
    found = explain(model, TEXTS[0])
    assert found.vocabulary == found.words == found.spans == ()
    assert found.logit == pytest.approx(found.bias)
