"""What training reads is what the model reads, and a text that fits is read once."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lexical_sae.text.tokenise import encode, structural_ids, token_ids
from lexical_sae.training import encoding
from lexical_sae.training.encoding import cut_texts, encode_dataset
from tests.tagged import tagged_dataset
from tests.tiny import TEXTS, tiny_tokenizer
from tests.training.small import small_dataset

KINDS = ("wordpiece", "bpe", "unigram")
PARTS = st.sampled_from(["lovely", "film", " ", ".", "<s>", "[MASK]", "</s>", "<pad>", "é", "zx"])
TEXT = st.lists(PARTS, max_size=12).map("".join)


@settings(max_examples=60, deadline=None)
@given(st.lists(TEXT, min_size=1, max_size=4), st.sampled_from(KINDS), st.sampled_from([None, 6]))
def test_the_ids_alone_are_those_of_the_slow_form(
    texts: list[str], kind: str, limit: int | None
) -> None:
    tokenizer = tiny_tokenizer(kind)
    structural = structural_ids(tokenizer)
    slow = encode(tokenizer, texts, limit, structural)
    rows = zip(slow.input_ids, slow.attention_mask.bool(), strict=True)
    assert token_ids(tokenizer, texts, limit, structural) == [ids[m].tolist() for ids, m in rows]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("limit", [4, 7, 60])
def test_cut_later_is_cut_at_once(kind: str, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = tiny_tokenizer(kind)
    special = structural_ids(tokenizer)
    data = replace(small_dataset(40, 0), texts=[t * (1 + i % 3) for i, t in enumerate(TEXTS[:40])])
    whole = encode_dataset(tokenizer, data, 60, special)
    at_once = encode_dataset(tokenizer, data, limit, special)
    read: list[int] = []
    monkeypatch.setattr(
        encoding, "token_ids", lambda *given: (read.append(len(given[1])), token_ids(*given))[1]
    )
    later = cut_texts(tokenizer, data, whole, limit, special)
    assert later.input_ids == at_once.input_ids
    assert later.labels == at_once.labels
    assert sum(read) == sum(length > limit for length in whole.lengths)


def test_sentences_are_read_in_windows_anew() -> None:
    tokenizer = tiny_tokenizer("wordpiece")
    data, special = tagged_dataset(6, 0), structural_ids(tokenizer)
    whole = encode_dataset(tokenizer, data, 60, special)
    cut = cut_texts(tokenizer, data, whole, 8, special)
    assert cut.input_ids == encode_dataset(tokenizer, data, 8, special).input_ids
    assert max(cut.lengths) <= 8
