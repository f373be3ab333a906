"""The sums over open words and their gradients, against torch's own."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lexical_sae.model.open_words import OpenWords, one_source_each
from lexical_sae.model.word_sums import gathered_sums, sum_open_words

ROWS, WORDS, SIZE = 5, 7, 4


def _problem(seed: int, pairs: int) -> tuple[OpenWords, torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(seed)
    keys = torch.randperm(ROWS * WORDS, generator=draw)[:pairs].sort().values
    value = torch.rand(pairs, generator=draw, dtype=torch.float64).requires_grad_()
    row, word = keys // WORDS, keys % WORDS
    words = one_source_each(
        row, word, value, value, torch.zeros_like(row), shape=(ROWS,), dictionary_size=WORDS
    )
    table = torch.randn(WORDS, SIZE, generator=draw, dtype=torch.float64).requires_grad_()
    return words, value, table


@settings(deadline=None, max_examples=50)
@given(seed=st.integers(0, 10**6), pairs=st.integers(1, ROWS * WORDS))
def test_sums_and_gradients_are_those_of_the_plain_form(seed: int, pairs: int) -> None:
    words, value, table = _problem(seed, pairs)
    pull = torch.randn(ROWS, SIZE, generator=torch.Generator().manual_seed(seed)).double()
    found = []
    for form in (sum_open_words, gathered_sums):
        sums = form(words, table)
        found.append((sums, *torch.autograd.grad((pull * sums).sum(), (table, value))))
    for fast, plain in zip(*found, strict=True):
        torch.testing.assert_close(fast, plain)


def test_gradcheck() -> None:
    words, _, table = _problem(0, 12)

    def sums(value: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
        from dataclasses import replace

        return sum_open_words(replace(words, value=value), table)

    value = words.value.detach().requires_grad_()
    assert torch.autograd.gradcheck(sums, (value, table))


def test_without_open_words_there_is_a_gradient_of_nothing() -> None:
    words, _, table = _problem(0, 0)
    sums = sum_open_words(words, table)
    sums.sum().backward()
    assert not sums.any()
    assert table.grad is not None
    assert not table.grad.any()
