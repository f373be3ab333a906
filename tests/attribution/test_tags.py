"""Explanations of tags: every word's sum, every entity's sum, legal tags, and windows."""

from __future__ import annotations

import json
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from lexical_sae.attribution.tags import explain_tags
from lexical_sae.model.lexical_sae import LexicalSAE
from lexical_sae.tagging import predict_tags
from lexical_sae.text.iob import find_violation
from tests.tagged import tagged_dataset, tiny_tagger
from tests.tiny import FAMILIES, tiny_model

SENTENCES = tagged_dataset(40).tokens
WORDS = sorted({word for words in SENTENCES for word in words} | {"​", "unheardof", "日本"})


@pytest.fixture(scope="module")
def tagger() -> LexicalSAE:
    return tiny_tagger()


@pytest.mark.parametrize("family", FAMILIES)
def test_every_tag_is_its_sum_in_every_family(family: str) -> None:
    for found in explain_tags(tiny_tagger(family), SENTENCES[:6]):
        for token in found.tokens:
            assert token.read
            assert token.residual < 1e-4
            assert all(word.contribution != 0 for word in token.vocabulary)
        assert any(token.vocabulary for token in found.tokens)


@pytest.mark.parametrize("options", [{"hidden_bias": True}, {"head": "linear"}, {"gate": "jump"}])
def test_every_tag_is_its_sum_for_every_head(options: dict[str, object]) -> None:
    for found in explain_tags(tiny_tagger(**options), SENTENCES[:6]):
        assert max(token.residual for token in found.tokens) < 1e-4


@settings(max_examples=25)
@given(st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=12), min_size=1, max_size=5))
def test_tags_are_legal_and_entities_are_the_sums_of_their_words(
    sentences: list[list[str]],
) -> None:
    for words, found in zip(sentences, explain_tags(_TAGGER, sentences), strict=True):
        assert len(found.tokens) == len(words)
        assert find_violation(found.tags) is None
        assert found.text == " ".join(words)
        for explained in found.entities:
            entity = explained.entity
            inside = found.tokens[slice(*entity.words)]
            assert found.text[entity.start : entity.end] == entity.text
            assert explained.logit == pytest.approx(sum(token.logit for token in inside))
            parts = [word.contribution for token in inside for word in token.vocabulary]
            total = math.fsum(word.contribution for word in explained.vocabulary)
            assert total == pytest.approx(math.fsum(parts), abs=1e-9)
            assert explained.residual < 1e-3
            assert 0 < entity.score <= 1


_TAGGER = tiny_tagger()


def test_a_word_without_a_token_is_outside_and_unread(tagger: LexicalSAE) -> None:
    (found,) = explain_tags(tagger, [["the", "​", "film"]])
    assert [token.read for token in found.tokens] == [True, False, True]
    assert found.tokens[1].tag == "O"
    assert not found.tokens[1].vocabulary


def test_batch_mates_and_batch_sizes_change_nothing(tagger: LexicalSAE) -> None:
    together = explain_tags(tagger, SENTENCES)
    for size in (1, 7):
        for one, other in zip(
            together, explain_tags(tagger, SENTENCES, batch_size=size), strict=True
        ):
            assert one.tags == other.tags
            for left, right in zip(one.tokens, other.tokens, strict=True):
                assert left.logit == pytest.approx(right.logit, abs=1e-4)


def test_a_long_sentence_is_read_in_windows_and_every_word_gets_a_tag() -> None:
    tagger = tiny_tagger(max_tokens=16)
    words = [word for sentence in SENTENCES[:12] for word in sentence]
    (found,) = explain_tags(tagger, [words])
    assert len(found.tokens) == len(words)
    assert all(token.read for token in found.tokens)
    assert max(token.residual for token in found.tokens) < 1e-4


def test_a_text_is_split_and_its_places_are_its_own(tagger: LexicalSAE) -> None:
    text = "The film  is lovely, isn't it? U.S. 3.5"
    (found,) = explain_tags(tagger, [text])
    assert [token.text for token in found.tokens] == [
        *("The", "film", "is", "lovely", ",", "isn", "'t", "it", "?", "U.S.", "3.5")
    ]
    for token in found.tokens:
        assert text[token.start : token.end] == token.text


def test_predictions_are_those_of_the_explanations(tagger: LexicalSAE) -> None:
    for predicted, found in zip(
        predict_tags(tagger, SENTENCES), explain_tags(tagger, SENTENCES), strict=True
    ):
        assert predicted.tags == found.tags
        assert predicted.entities == tuple(explained.entity for explained in found.entities)
        assert predicted.open_words == sum(
            sum(word.activation is not None for word in token.vocabulary) for token in found.tokens
        )


def test_only_so_many_words_stay_open_per_token() -> None:
    tagger = tiny_tagger(topk_per_position=3)
    for found in explain_tags(tagger, SENTENCES[:8]):
        assert max(len(token.vocabulary) for token in found.tokens) <= 3
        assert max(token.residual for token in found.tokens) < 1e-4


def test_it_shows_itself(tagger: LexicalSAE) -> None:
    (found,) = explain_tags(tagger, [["<b>film</b>", "is", "lovely"]])
    data = json.loads(found.to_json())
    assert [token["tag"] for token in data["tokens"]] == list(found.tags)
    assert len(data["entities"]) == len(found.entities)
    page = found.to_html()
    assert "<b>film" not in page
    assert "&lt;b&gt;film" in page
    assert found._repr_html_().startswith('<div class="lexical-sae">')
    console = Console(width=80, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(found)
    shown = console.export_text()
    assert "film" in shown
    for explained in found.entities:
        assert f"= {explained.logit:.4f}" in shown


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("one text", "sentences is one string"),
        ([], "sentences is empty"),
        ([[]], "sentences\\[0\\] is an empty list"),
        ([["a", ""]], "word 2 is ''"),
        ([["a", 3]], "word 2 is 3"),
        (["   "], "expected a text with at least one word"),
        ([7], "sentences\\[0\\] is int"),
    ],
)
def test_bad_sentences_get_one_sentence(tagger: LexicalSAE, given: object, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        explain_tags(tagger, given)  # type: ignore[arg-type]


def test_a_classifier_is_no_tagger() -> None:
    with pytest.raises(ValueError, match="This model is for classification"):
        explain_tags(tiny_model(), SENTENCES[:1])


def test_tagging_some_positions_equals_tagging_all(tagger: LexicalSAE) -> None:
    inputs = tagger.encode([" ".join(words) for words in SENTENCES[:5]]).model_inputs()
    everywhere = tagger.tag(**inputs)
    where = tagger.word_mask(**inputs) & (torch.rand(inputs["input_ids"].shape) < 0.5)
    some = tagger.tag(**inputs, where=where)
    assert torch.equal(some.logits[where], everywhere.logits[where])
    rows = everywhere.at_rows(where)
    assert torch.equal(rows.logits, some.at_rows(where).logits)
    assert torch.equal(rows.open_words.value, some.at_rows(where).open_words.value)
    assert rows.open_words.shape == (int(where.sum()),)
    dense = everywhere.sparse_vector[where]
    assert torch.equal(rows.sparse_vector, dense)
