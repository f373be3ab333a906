"""Function words: what counts as one, and that nothing opens there with positions="content"."""

from __future__ import annotations

import pytest
import torch

from lexical_sae.model.function_words import function_token_ids, is_function_word
from tests.tiny import FAMILIES, tiny_model, tiny_tokenizer


@pytest.mark.parametrize("text", ["the", "The", "is", ",", ".", "...", "—", "“", "'", "s", "of"])
def test_grammar_is_no_content(text: str) -> None:
    assert is_function_word(text)


@pytest.mark.parametrize("text", ["not", "no", "never", "but", "too", "10", "😀", "$"])
def test_what_changes_the_meaning_is_content(text: str) -> None:
    assert not is_function_word(text)


@pytest.mark.parametrize("kind", sorted({kind for _, kind in FAMILIES.values()}))
def test_ids_for_every_kind_of_tokenizer(kind: str) -> None:
    tokenizer = tiny_tokenizer(kind)
    ids = set(function_token_ids(tokenizer))
    assert ids
    encoded = tokenizer("the film is lovely", add_special_tokens=False)["input_ids"]
    assert [index in ids for index in encoded] == [True, False, True, False]


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_nothing_opens_at_function_words(family: str) -> None:
    model = tiny_model(family, positions="content")
    texts = ["the film is lovely", "the plot of it", "is the , ."]
    encoded = model.encode(texts)
    state = model.classify(**encoded.model_inputs())
    at = encoded.input_ids[state.open_words.row, state.positions]
    function = torch.isin(at, torch.tensor(model.config.function_token_ids))
    assert not bool(function[state.open_words.row < 2].any())
    # a text of nothing else still gets its words, so that it has an explanation
    assert int(state.open_words.counts()[2]) > 0
    everywhere = tiny_model(family)
    assert bool((everywhere.tag(**encoded.model_inputs()).open_words.counts() > 0)[0, 1:5].all())
