"""Invariant 4: a suppressed coordinate cannot matter, bit for bit."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.properties.cases import Case, cases


@given(cases(dtype=torch.float32), st.integers(0, 2**31), st.data())
def test_randomising_suppressed_words_leaves_the_logits_alone(
    case: Case, seed: int, data: st.DataObject
) -> None:
    words = case.layer.keep.numel()
    gone = data.draw(st.sets(st.integers(0, words - 1), min_size=1, max_size=words))
    case.layer.suppress(gone)
    before = case.state()
    gone_index = torch.tensor(sorted(gone))
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in (case.layer.weight, case.layer.bias, case.layer.threshold):
            noise = torch.randn(len(gone), *parameter.shape[1:], generator=generator)
            parameter[gone_index] = noise * 100
        table = case.head.word_table()
        table[gone_index] = torch.randn(len(gone), table.shape[1], generator=generator) * 100
    after = case.state()
    assert torch.equal(before.logits, after.logits)
    assert not bool(torch.isin(after.open_words.word, gone_index).any())
    assert torch.equal(before.open_words.value, after.open_words.value)


@given(cases(dtype=torch.float32))
def test_suppressing_everything_leaves_the_bias(case: Case) -> None:
    case.layer.suppress(range(case.layer.keep.numel()))
    state = case.state()
    assert len(state.open_words) == 0
    assert torch.equal(state.logits, state.b_eff)
