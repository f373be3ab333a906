"""Invariant 4: a suppressed coordinate cannot matter, bit for bit."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from lexical_sae.model.bcos import BcosHead
from tests.properties.cases import Case, cases


@given(cases(dtype=torch.float32, senses=False), st.integers(0, 2**31), st.data())
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
        if not isinstance(case.head, BcosHead):  # a row there is part of every unit's length
            table = case.head.word_table()
            table[gone_index] = torch.randn(len(gone), table.shape[1], generator=generator) * 100
    after = case.state()
    assert torch.equal(before.logits, after.logits)
    assert not bool(torch.isin(after.open_words.word, gone_index).any())
    assert torch.equal(before.open_words.value, after.open_words.value)


@given(cases(dtype=torch.float32, senses=False), st.data())
def test_slicing_words_away_is_suppressing_them(case: Case, data: st.DataObject) -> None:
    """What `compact` relies on, bit for bit."""
    words = case.layer.keep.numel()
    kept = data.draw(st.sets(st.integers(0, words - 1), min_size=1, max_size=words))
    case.layer.suppress(set(range(words)) - kept)
    whole = case.state()
    index = torch.tensor(sorted(kept))
    for module, name in [(case.layer, n) for n in ("weight", "bias", "threshold")]:
        setattr(module, name, torch.nn.Parameter(getattr(module, name)[index]))
    case.layer.keep = case.layer.keep[index]
    case.head.select_words(index)
    sliced = case.state()
    assert torch.equal(whole.logits, sliced.logits)
    assert torch.equal(whole.open_words.word, index[sliced.open_words.word])
    assert torch.equal(whole.open_words.value, sliced.open_words.value)
    assert torch.equal(whole.open_words.position, sliced.open_words.position)


@given(cases(dtype=torch.float32))
def test_suppressing_everything_leaves_the_bias(case: Case) -> None:
    case.layer.suppress(range(case.layer.keep.numel()))
    state = case.state()
    assert len(state.open_words) == 0
    assert torch.equal(state.logits, state.b_eff)
