"""A cut word cannot matter; its effect is predicted and realised; the original stays."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lexical_sae import LexicalSAE
from lexical_sae.evaluation.reading import read_texts
from lexical_sae.surgery.effect import after_removal, effect_of
from lexical_sae.surgery.suppression import (
    suppress_token_globally,
    suppress_words,
    suppressed_coordinates,
    without_words,
)
from tests.tiny import TEXTS, tiny_model

SOME = TEXTS[::7]


def reading(model: LexicalSAE):  # type: ignore[no-untyped-def]
    return read_texts(model, SOME, [0] * len(SOME))


def test_the_view_shares_all_weights_and_leaves_the_original() -> None:
    model = tiny_model("bert")
    before = reading(model).state.logits.clone()
    cut = suppress_words(model, ["lovely", "boring"])
    assert cut.selection.words(model.dictionary) == ("boring", "lovely")
    own, shared = dict(model.named_parameters()), dict(cut.view.named_parameters())
    assert own.keys() == shared.keys()
    assert all(own[name] is shared[name] for name in own)
    opened = reading(cut.view).state.open_words.word
    assert not torch.isin(opened, torch.tensor(cut.coordinates)).any()
    assert torch.equal(reading(model).state.logits, before)
    assert cut.restore() is model
    assert suppressed_coordinates(cut.view) == cut.coordinates
    assert suppressed_coordinates(model) == ()


def test_a_cut_for_good_is_saved_and_can_be_undone(tmp_path: Path) -> None:
    model = tiny_model("bert")
    before = reading(model).state.logits.clone()
    found = suppress_token_globally(model, ["Lovely"])
    after = reading(model).state.logits
    assert not torch.equal(before, after)
    model.save_pretrained(tmp_path)
    again = LexicalSAE.from_pretrained(tmp_path)
    assert suppressed_coordinates(again) == found.coordinates
    assert torch.equal(reading(again).state.logits, after)
    again.restore()
    assert torch.equal(reading(again).state.logits, before)


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 2**31), st.sampled_from(["bert", "roberta"]), st.sampled_from(["mlp", "linear"])
)
def test_whatever_stands_at_a_cut_coordinate_the_logits_are_the_same_bits(
    seed: int, family: str, head: str
) -> None:
    model = tiny_model(family, head=head)
    draw = torch.Generator().manual_seed(seed)
    chosen = torch.randperm(len(model.dictionary), generator=draw)[:5].tolist()
    view = without_words(model, chosen)
    before = reading(view).state.logits.clone()
    with torch.no_grad():
        for table in (model.lexical.weight, model.lexical.bias, model.lexical.threshold):
            table[chosen] = 100 * torch.randn(table[chosen].shape, generator=draw)
        model.head.word_table()[chosen] = 100 * torch.randn(5, model.head.word_table().shape[1])
    assert torch.equal(reading(view).state.logits, before)


@pytest.mark.parametrize("head", ["mlp", "linear"])
def test_the_effect_is_predicted_beside_the_real_one(head: str) -> None:
    model = tiny_model("bert", head=head)
    cut = suppress_words(model, ["lovely", "boring", "film"])
    before, after = reading(model).state, reading(cut.view).state
    torch.testing.assert_close(after_removal(before, cut.coordinates).logits, after.logits)
    found = effect_of(before, after, cut.coordinates)
    gone = torch.isin(before.open_words.word, torch.tensor(cut.coordinates))
    touched = torch.zeros(len(SOME), dtype=torch.bool)
    touched[before.open_words.row[gone]] = True
    assert touched.any()
    assert torch.equal(found.realised != 0, touched)
    still = found.switched == 0
    torch.testing.assert_close(found.predicted[still], found.realised[still], atol=1e-5, rtol=1e-4)
    if head == "linear":
        assert bool(still.all())
    said = found.summary()
    assert said["rows_touched"] == int(touched.sum())
    assert said["decisions_changed"] == int((before.predicted != after.predicted).sum())


def test_bad_input() -> None:
    model = tiny_model("bert")
    with pytest.raises(
        ValueError, match="'lovly' is not in the dictionary; the nearest are lovely"
    ):
        suppress_words(model, ["lovly"])
    with pytest.raises(ValueError, match="No words were given"):
        suppress_words(model, [])
    with pytest.raises(ValueError, match="words is the text 'lovely'"):
        suppress_words(model, "lovely")
    with pytest.raises(ValueError, match=r"would cut all .* words of the dictionary"):
        suppress_token_globally(model, patterns=["."])
    assert suppressed_coordinates(model) == ()
