"""dictionary="texts": the words that the user's own texts use, unless those are too few."""

from __future__ import annotations

import pytest
import torch

from lexical_sae import LexicalSAE
from lexical_sae.model import dictionary as module
from lexical_sae.model.dictionary import build_dictionary, words_of_texts
from tests.tiny import TEXTS, tiny_backbone, tiny_tokenizer


def build(texts: list[str] | None, **options: object) -> LexicalSAE:
    return LexicalSAE.from_backbone(
        tiny_backbone("bert"),
        labels=["no", "yes"],
        tokenizer=tiny_tokenizer("wordpiece"),
        texts=texts,
        dictionary="texts",
        **options,
    )


def test_only_words_of_the_texts(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setattr(module, "FEWEST_WORDS", 3)
    model = build(["The film is lovely.", "A film, funny and sad!"], open_words=2)
    assert set(model.dictionary.words) == {"the", "film", "is", "lovely", "funny", "and", "sad"}
    assert model.config.dictionary_size == len(model.dictionary) == model.lexical.weight.shape[0]
    with torch.no_grad():
        before = model.classify(**model.encode(TEXTS[:4]).model_inputs()).logits
    model.save_pretrained(tmp_path)
    loaded = LexicalSAE.from_pretrained(tmp_path)
    assert loaded.dictionary == model.dictionary
    with torch.no_grad():
        after = loaded.classify(**loaded.encode(TEXTS[:4]).model_inputs()).logits
    torch.testing.assert_close(before, after, rtol=0, atol=0)


def test_too_few_words_are_filled_up_with_the_commonest(monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = tiny_tokenizer("wordpiece")
    whole = build_dictionary(tokenizer, "words", len(tokenizer))
    assert build_dictionary(tokenizer, "texts", len(tokenizer)) == whole
    assert words_of_texts(tokenizer, whole, TEXTS) == whole  # there are no more
    monkeypatch.setattr(module, "FEWEST_WORDS", 9)
    last = whole.words[-1]
    found = words_of_texts(tokenizer, whole, [last])
    assert found.words == (*whole.words[:8], last)
    assert list(found.token_ids) == sorted(found.token_ids)


def test_texts_are_needed() -> None:
    with pytest.raises(ValueError, match="dictionary='texts' takes its words from texts"):
        build(None)
