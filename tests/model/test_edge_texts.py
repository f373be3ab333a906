"""Texts that people really send: empty, foreign, hostile, too long."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lexical_sae.attribution.contributions import compute_attribution_tensor
from lexical_sae.attribution.verify import verify_sum
from tests.tiny import SPECIAL, TEXTS, tiny_model

MODELS = {family: tiny_model(family) for family in ("bert", "roberta", "deberta-v2")}


@pytest.mark.parametrize("family", MODELS)
@pytest.mark.parametrize("text", ["", "   ", "\n\t", "\u200b"])
def test_a_text_of_no_words_gets_the_bias_and_an_empty_explanation(family: str, text: str) -> None:
    model = MODELS[family]
    encoded = model.encode([text])
    state = model.classify(**encoded.model_inputs())
    assert verify_sum(state).ok
    if bool(model.word_mask(**encoded.model_inputs()).any()):
        assert family != "bert"  # byte-level and Unigram tokenizers make tokens of white space
        assert text != ""
        return
    assert len(state.open_words) == 0
    assert torch.equal(state.logits[0], model.head.b2)
    assert compute_attribution_tensor(state).shape == (0, 3)


def test_only_special_tokens_open_nothing() -> None:
    model = MODELS["bert"]
    ids = torch.tensor([model.config.special_token_ids])
    for state in (model.classify(ids), model.tag(ids)):
        assert len(state.open_words) == 0
        assert torch.equal(state.logits.reshape(-1, 3)[0], model.head.b2)
        assert verify_sum(state).ok


def test_nothing_open_still_trains() -> None:
    model = tiny_model("bert").train()
    with torch.no_grad():
        model.lexical.threshold.fill_(1e9)
    state = model.classify(**model.encode(TEXTS[:2]).model_inputs())
    assert len(state.open_words) == 0
    state.logits.sum().backward()
    assert torch.equal(model.head.b2.grad, torch.full((3,), 2.0))


@pytest.mark.parametrize("family", MODELS)
def test_special_tokens_spelled_out_in_a_text_are_letters(family: str) -> None:
    """A text must not be able to place the model's own markers."""
    model = MODELS[family]
    kind = {"bert": "wordpiece", "roberta": "bpe", "deberta-v2": "unigram"}[family]
    markers = SPECIAL[kind]
    encoded = model.encode([f"the film {marker} is lovely" for marker in markers])
    unknown = model.tokenizer.unk_token_id
    for ids, mask in zip(encoded.input_ids.tolist(), encoded.attention_mask.tolist(), strict=True):
        inner = [i for i, m in zip(ids, mask, strict=True) if m][1:-1]
        assert not set(inner) & (set(model.tokenizer.all_special_ids) - {unknown})
    assert verify_sum(model.classify(**encoded.model_inputs())).ok


def test_an_unknown_word_can_carry_a_contribution() -> None:
    """Emoji become the unknown token; it stands for a word, so its position is a word position."""
    model = MODELS["bert"]
    encoded = model.encode(["\U0001f600"])
    mask = model.word_mask(**encoded.model_inputs())
    assert encoded.input_ids[0, 1] == model.tokenizer.unk_token_id
    assert mask.tolist() == [[False, True, False]]


@settings(deadline=None, max_examples=30)
@given(texts=st.lists(st.text(max_size=60), min_size=1, max_size=4))
@pytest.mark.parametrize("family", MODELS)
def test_any_text_adds_up(family: str, texts: list[str]) -> None:
    model = MODELS[family]
    encoded = model.encode(texts)
    for state in (
        model.classify(**encoded.model_inputs()),
        model.tag(**encoded.model_inputs()),
    ):
        assert verify_sum(state).ok
    for row, text in enumerate(texts):
        for start, end in encoded.offsets[row]:
            assert 0 <= start <= end <= len(text)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("one string", "texts is one string"),
        ([], "texts is empty"),
        (["fine", None], r"texts\[1\] is NoneType"),
        ([3.5], r"texts\[0\] is float"),
        (["fine", "half \ud83d"], r"texts\[1\]: the text holds half a character .* at position 6"),
    ],
)
def test_what_is_not_a_list_of_strings_is_refused(texts: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MODELS["bert"].encode(texts)


def test_lengths_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="max_tokens is 2; expected at least 3"):
        MODELS["bert"].encode(["the film"], max_tokens=2)
    with pytest.raises(ValueError, match="max_tokens is 900; this backbone reads at most 64"):
        MODELS["bert"].encode(["the film"], max_tokens=900)


def test_shapes_that_do_not_fit_are_refused() -> None:
    ids = torch.ones(2, 3, dtype=torch.long)
    with pytest.raises(ValueError, match=r"shape \(2, 3\) and attention_mask \(2, 4\)"):
        MODELS["bert"].classify(ids, torch.ones(2, 4))
