"""The store of which words the untrained model opens for each text."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lexical_sae.training.losses.reference_words import ReferenceWords, ReferenceWordsBuilder
from tests.training.batches import Batch, batches
from tests.training.pairs import sparse


@given(st.lists(batches(words=9), min_size=1, max_size=3), batches(words=9), st.data())
def test_the_store_is_the_set_of_open_pairs(
    seen: list[Batch], batch: Batch, data: st.DataObject
) -> None:
    builder, plain = ReferenceWordsBuilder(9), set()
    for part in seen:
        text = _texts(part, data)
        builder.add(text, part.open_words())
        for row, word in part.value.nonzero().tolist():
            plain.add((int(text[row]), word))
    store = ReferenceWords.from_tensors(builder.build().to_tensors())
    assert len(store) == len(plain)
    text, words = _texts(batch, data), batch.open_words()
    pairs = zip(text[words.row].tolist(), words.word.tolist(), strict=True)
    assert store.contains(text, words).tolist() == [pair in plain for pair in pairs]


def _texts(batch: Batch, data: st.DataObject) -> torch.Tensor:
    rows = batch.value.shape[0]
    number = st.integers(0, 5) | st.just(2**32)  # in 32 bits the same as 0
    return torch.tensor(data.draw(st.lists(number, min_size=rows, max_size=rows)))


def test_a_tagged_batch_takes_one_text_for_all_its_positions() -> None:
    words = replace(sparse(torch.eye(6)), shape=(2, 3))
    builder = ReferenceWordsBuilder(6)
    builder.add(torch.tensor([7, 8]), words)
    assert builder.build().keys.tolist() == [42, 43, 44, 51, 52, 53]
    assert (
        builder.build().contains(torch.tensor([7, 7]), words).tolist() == [True] * 3 + [False] * 3
    )


def test_an_empty_store_and_an_empty_batch() -> None:
    store = ReferenceWordsBuilder(4).build()
    assert store.contains(torch.tensor([0]), sparse(torch.ones(1, 4))).tolist() == [False] * 4
    assert store.contains(torch.tensor([0]), sparse(torch.zeros(1, 4))).tolist() == []


def test_what_does_not_fit_is_refused() -> None:
    builder, words = ReferenceWordsBuilder(4), sparse(torch.ones(2, 5))
    with pytest.raises(ValueError, match="expected 4"):
        builder.add(torch.tensor([0, 1]), words)
    with pytest.raises(ValueError, match="dictionary of 4 words"):
        builder.build().contains(torch.tensor([0, 1]), words)
    with pytest.raises(ValueError, match="expected one for each of the 2 rows"):
        ReferenceWordsBuilder(5).add(torch.tensor([0]), words)
    with pytest.raises(ValueError, match="strictly ascending"):
        ReferenceWords.from_tensors(
            {"keys": torch.tensor([2, 1]), "dictionary_size": torch.tensor(4)}
        )
