"""Words that are left unread: no decision depends on them, and that is kept, told and certified."""

from __future__ import annotations

import dataclasses
import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lexical_sae import LexicalSAE, LexicalSAEConfig
from lexical_sae.attribution.explain import explain, explain_many
from lexical_sae.evaluation.reading import read_texts
from lexical_sae.model.fingerprint import model_hash
from lexical_sae.predicting import predict_texts
from lexical_sae.report.terminal import unread_line
from lexical_sae.studies.planted import plant_everywhere
from lexical_sae.studies.surgery_config import Planted
from lexical_sae.surgery import unread as unread_module
from lexical_sae.surgery.certificate import certify_removal
from lexical_sae.surgery.comparison import random_text_words_like
from lexical_sae.surgery.effect import effect_of
from lexical_sae.surgery.removal import removal_of
from lexical_sae.surgery.suppression import (
    suppress_token_globally,
    suppress_words,
    suppressed_coordinates,
)
from lexical_sae.surgery.unread import (
    apart_from_phrases,
    check_unread,
    contributed_by,
    filled_text,
)
from lexical_sae.surgery.verification import differences
from lexical_sae.text.unread import without_unread
from tests.tagged import tiny_tagger
from tests.tiny import TEXTS, tiny_model
from tests.training.small import small_dataset

SOME = TEXTS[::9]
FEW = [text.replace("lovely", "lovely bright") for text in SOME]


def logits(model: LexicalSAE, texts: list[str]) -> torch.Tensor:
    return read_texts(model, texts, [0] * len(texts)).state.logits


@pytest.mark.parametrize("family", ["bert", "roberta", "deberta-v2"])
def test_a_text_is_read_as_if_the_words_had_never_stood_there(family: str) -> None:
    model = tiny_model(family)
    view = suppress_words(model, ["lovely"], how="unread").view
    without = [without_unread(text, ["lovely"]).text for text in SOME]
    assert without != SOME
    assert torch.equal(logits(view, SOME), logits(model, without))
    assert suppressed_coordinates(view) == ()
    assert model.config.unread == []


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**31), st.sampled_from(["bert", "roberta"]))
def test_whatever_of_the_words_stands_in_a_text_the_logits_are_the_same_bits(
    seed: int, family: str
) -> None:
    words = ("lovely", "bright", "house", "old garden")
    model = suppress_words(tiny_model(family), words, how="unread", exact=True).view
    draw = random.Random(seed)
    fillers = apart_from_phrases(words)
    assert fillers == list(words)
    filled = [filled_text(text, words, fillers, draw) for text in SOME]
    assert filled != SOME
    assert torch.equal(logits(model, filled), logits(model, SOME))


def test_a_planted_word_left_unread_is_as_if_it_had_not_been_planted() -> None:
    data = small_dataset(40, 1)
    spoilt = plant_everywhere(data, Planted(word="garden", label="positive"), 0)
    assert spoilt.texts != data.texts
    model = tiny_model("bert")
    view = suppress_words(model, ["garden"], how="unread").view
    assert not torch.equal(logits(model, spoilt.texts), logits(model, data.texts))
    pairs = zip(
        view.encode(spoilt.texts).input_ids, model.encode(data.texts).input_ids, strict=True
    )
    assert all(torch.equal(read, plain) for read, plain in pairs)
    # in other batches, whose padding moves the last bits
    torch.testing.assert_close(logits(view, spoilt.texts), logits(model, data.texts))


def test_both_leaves_no_coordinate_and_no_word(tmp_path: Path) -> None:
    model = tiny_model("bert")
    before = logits(model, SOME)
    selection = suppress_token_globally(model, ["lovely"], how="both")
    assert suppressed_coordinates(model) == selection.coordinates != ()
    assert "lovely" in model.config.unread
    after = logits(model, SOME)
    model.save_pretrained(tmp_path)
    again = LexicalSAE.from_pretrained(tmp_path)
    assert again.config.unread == model.config.unread
    assert model_hash(again) == model_hash(model)
    assert torch.equal(logits(again, SOME), after)
    again.restore()
    assert torch.equal(logits(again, SOME), before)
    assert model_hash(again) != model_hash(model)


def test_a_word_that_no_dictionary_has_can_be_left_unread() -> None:
    model = tiny_model("bert")
    found = removal_of(model.dictionary, ["zyxx", "lovely"], how="unread")
    assert {"zyxx", "lovely"} < set(found.unread)
    assert found.coordinates == ()
    (line,) = [note for note in found.notes(model.dictionary) if "zyxx" in note]
    assert line.endswith("It is left unread all the same.")
    assert removal_of(model.dictionary, ["zyxx"], how="both").coordinates == ()


def test_bad_requests() -> None:
    model = tiny_model("bert")
    with pytest.raises(ValueError, match="how is 'gone'; expected one of cut, unread, both"):
        suppress_words(model, ["lovely"], how="gone")
    with pytest.raises(ValueError, match="No words were given"):
        suppress_words(model, [], how="unread")
    with pytest.raises(ValueError, match="'bank#2' is one sense of a word"):
        suppress_words(model, ["bank#2"], how="unread")
    with pytest.raises(ValueError, match="A tagger has to read a word to tag it"):
        suppress_words(tiny_tagger(), ["lovely"], how="unread", exact=True)
    with pytest.raises(ValueError, match="unread is 'lovely'; expected a list of words"):
        LexicalSAEConfig(unread="lovely")
    with pytest.raises(ValueError, match="unread is 'lovely'; expected a list of words"):
        tiny_model("bert").leave_unread("lovely")
    with pytest.raises(ValueError, match="expected words of letters or digits"):
        suppress_words(tiny_model("bert"), ["\u200b"], how="unread", exact=True)


def test_an_explanation_tells_what_was_not_read() -> None:
    model = tiny_model("bert")
    view = suppress_words(model, ["lovely", "film"], how="unread").view
    text = "The film is Lovely, and the house is gorgeous."
    found = explain(view, text)
    assert [place.text for place in found.unread] == ["film", "Lovely"]
    assert [text[p.start : p.end] for p in found.unread] == ["film", "Lovely"]
    assert unread_line(found) == "not read: film, Lovely"
    assert found.residual < 1e-5
    # words that were read keep their places in the whole text
    for word in found.words:
        assert text[word.start : word.end] == word.text
    assert found.words
    assert not {word.text.lower() for word in found.words} & {"film", "lovely"}
    assert found.to_dict()["unread"][0] == {"text": "film", "start": 4, "end": 8}
    assert "not read: film, Lovely" in found.to_html()
    assert "unread" not in explain(model, text).to_dict()
    assert explain(model, text).unread == ()


def test_a_text_of_nothing_else_gets_what_no_word_gives() -> None:
    model = suppress_words(tiny_model("bert"), ["lovely"], how="unread").view
    (found,) = explain_many(model, ["lovely"])
    assert found.vocabulary == ()
    assert found.logit == pytest.approx(found.bias)
    assert predict_texts(model, ["Lovely", "lovely lovely"]).open_words.tolist() == [0, 0]


def test_long_texts_in_windows() -> None:
    model = tiny_model("bert", max_tokens=16).read_windows()
    view = suppress_words(model, ["lovely", "bright"], how="unread").view
    assert view.config.windows
    long = " ".join(TEXTS[:30])
    filled = filled_text(long, view.config.unread, ["lovely"], random.Random(1))
    assert filled != long
    assert torch.equal(logits(view, [filled]), logits(view, [long]))
    assert torch.equal(
        logits(view, [long]), logits(model, [without_unread(long, view.config.unread).text])
    )


def test_fillers_do_not_make_phrases() -> None:
    words = ["african american", "african", "american", "deaf", "middle eastern"]
    assert apart_from_phrases(words) == ["african american", "deaf", "middle eastern"]


def test_the_check_finds_a_model_that_reads_the_words(monkeypatch: pytest.MonkeyPatch) -> None:
    model = suppress_words(tiny_model("bert"), ["lovely"], how="unread").view
    found = check_unread(model, SOME)
    assert found.fillings >= 10_000
    assert found.differing == 0
    whole = unread_module.without_unread

    def only_small(text: str, words: tuple[str, ...]) -> object:
        left = whole(text, words)
        return left if "L" not in text else dataclasses.replace(left, text=text, places=None)

    monkeypatch.setattr("lexical_sae.text.tokenise.without_unread", only_small)
    assert check_unread(model, SOME).differing > 3_000


def test_words_that_cannot_be_put_in_are_dropped_and_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = ["old house", "old houses"]
    model = suppress_words(tiny_model("roberta"), words, how="unread", exact=True).view
    found = check_unread(model, TEXTS)
    assert found.not_put_in == ("old house", "old houses")
    assert 0 < found.fillings < 20_000  # the texts that hold one, when it was dropped
    assert found.differing == 0
    left = unread_module.without_unread
    monkeypatch.setattr(
        "lexical_sae.text.tokenise.without_unread", lambda text, words: left(text, ())
    )
    blind = check_unread(model, TEXTS)
    assert blind.differing == blind.fillings > 0


def test_only_texts_that_hold_a_word_are_touched() -> None:
    texts = [*(text for text in TEXTS if "lovely" not in text)][:40] + ["lovely " * 30 + "film"] * 3
    data = replace(small_dataset(43, 1), texts=texts)
    model = suppress_words(tiny_model("roberta"), ["lovely"], how="unread").view
    assert certify_removal(model, data, None)["effect"]["rows_touched"] == 3


def test_a_token_around_an_unread_word_is_not_named_after_it() -> None:
    for family in ("deberta-v2", "roberta", "bert"):
        view = suppress_words(tiny_model(family), ["lovely"], how="unread").view
        found = explain(view, "the (lovely) film")
        assert not any("lovely" in word.text for word in found.words)
        assert not any("lovely" in word.source.text for word in found.vocabulary)
        assert found.residual < 1e-5


def test_what_is_predicted_is_what_opened_at_the_words() -> None:
    """Against a sum over the explanation's own words."""
    model = tiny_model("bert")
    words, cut = ("lovely", "film"), model.dictionary.coordinates("lovely")
    gave = contributed_by(model, FEW, words, cut)
    for text, value in zip(FEW, gave.tolist(), strict=True):
        parts = [
            one.contribution
            for one in explain(model, text).vocabulary
            if one.source.text.lower() in words and one.coordinate not in cut
        ]
        assert value == pytest.approx(sum(parts), abs=1e-5)
    before = read_texts(model, FEW, [0] * len(FEW)).state
    after = read_texts(suppress_words(model, words, how="unread").view, FEW, [0] * len(FEW)).state
    effect = effect_of(before, after, (), contributed_by(model, FEW, words, ()))
    touched = torch.tensor([any(word in text for word in words) for text in FEW])
    assert bool((effect.realised[~touched] == 0).all())
    assert bool((effect.predicted[~touched] == 0).all())
    assert bool((effect.realised[touched] != 0).any())


def test_a_certificate_holds_what_is_left_unread() -> None:
    model = suppress_words(tiny_model("bert"), ["lovely"], how="unread").view
    test, train = small_dataset(30, 1), small_dataset(60, 0)
    found = certify_removal(model, test, train)
    assert found["suppressed"] == []
    assert found["non_interference"] == {"fillings": 0, "differing": 0}
    assert found["unread"]["differing"] == 0
    assert found["unread"]["fillings"] >= 10_000
    assert "lovely" in found["unread"]["words"]
    found = json.loads(json.dumps(found))
    assert differences(found, model, test, train) == []
    other = suppress_words(tiny_model("bert"), ["boring"], how="unread").view
    (line,) = differences(found, other, test, train)
    assert "The model is another one" in line


def test_words_that_stand_in_as_many_texts() -> None:
    texts = ["a b", "a c", "a b d", "e"]
    found = random_text_words_like(texts, ["b", "zz"], 0)
    assert len(found) == 1
    assert found[0] in {"a", "c", "d", "e"}
