"""Invariant 2: the fast head is the plain head, and depends on nothing but its own text."""

from __future__ import annotations

from unittest import mock

import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from torch import Tensor

from lexical_sae.model import selection
from lexical_sae.model.gate import apply_gate
from lexical_sae.model.open_words import OpenWords
from lexical_sae.model.pooling import pool_max
from lexical_sae.model.reference import (
    plain_documents,
    plain_documents_pooled_first,
    plain_logits,
    plain_positions,
)
from tests.properties.cases import Case, cases


def _gradients(case: Case, logits: Tensor, h: Tensor) -> dict[str, Tensor]:
    named = dict(case.layer.named_parameters(prefix="layer"))
    named |= dict(case.head.named_parameters(prefix="head"))
    named["h"] = h
    weights = torch.linspace(-1, 1, logits.numel(), dtype=logits.dtype).view_as(logits)
    found = torch.autograd.grad((logits * weights).sum(), list(named.values()), allow_unused=True)
    return {
        name: torch.zeros_like(p) if g is None else g
        for (name, p), g in zip(named.items(), found, strict=True)
    }


@given(cases(training=None))
def test_values_and_gradients(case: Case) -> None:
    fast_h = case.h.clone().requires_grad_()
    state = case.state(h=fast_h)
    plain_h = case.h.clone().requires_grad_()
    run = plain_positions if case.tagging else plain_documents
    s = run(case.layer, plain_h, case.mask)
    torch.testing.assert_close(state.sparse_vector, s)
    pooled = case.layer.attention is None and not (case.layer.topk and not case.layer.training)
    if pooled and not case.tagging:
        # where all positions are closed the maximum of zeros has no position of its own, so the
        # windows' gradients are compared on the form that pools first
        s = plain_documents_pooled_first(case.layer, plain_h, case.mask)
        torch.testing.assert_close(state.sparse_vector, s)
    logits = plain_logits(case.head, s)
    torch.testing.assert_close(state.logits, logits)
    fast, plain = _gradients(case, state.logits, fast_h), _gradients(case, logits, plain_h)
    if case.layer.gate == "jump" and not case.layer.training:
        # closed words inside the window are kept for their threshold's sake in training only
        del plain["layer.threshold"]
    for name in plain:
        torch.testing.assert_close(fast[name], plain[name], msg=lambda m, n=name: f"{n}: {m}")


@given(cases(topk=False))
def test_pooling_before_the_gate_is_pooling_after_it(case: Case) -> None:
    assume(case.layer.attention is None)
    first = case.layer.documents(case.h, case.mask)
    after = pool_max(case.layer.positions(case.h, case.mask))
    _assert_same(first, after)


def _assert_same(a: OpenWords, b: OpenWords) -> None:
    """Bitwise: the same words, values and positions."""
    assert a.shape == b.shape
    for name in ("row", "word", "value", "position"):
        assert torch.equal(getattr(a, name), getattr(b, name)), name


@given(cases(dtype=torch.float32), st.integers(1, 16), st.integers(1, 16))
def test_block_sizes_change_nothing(case: Case, rows: int, words: int) -> None:
    usual = case.state()
    with mock.patch.object(selection, "CPU_BLOCK", (rows, words)):
        other = case.state()
    _assert_same(usual.open_words, other.open_words)
    assert torch.equal(usual.logits, other.logits)


@given(cases(dtype=torch.float32), st.integers(1, 4))
def test_padding_changes_nothing(case: Case, extra: int) -> None:
    batch, length, size = case.h.shape
    h = torch.cat([case.h, torch.full((batch, extra, size), 7.0)], dim=1)
    mask = torch.cat([case.mask, torch.zeros(batch, extra, dtype=torch.bool)], dim=1)
    usual, padded = case.state(), case.state(h, mask)
    if case.tagging:
        assert torch.equal(usual.sparse_vector, padded.sparse_vector[:, :length])
        torch.testing.assert_close(usual.logits, padded.logits[:, :length])
        assert int(padded.open_words.counts()[:, length:].sum()) == 0
    else:
        _assert_same(usual.open_words, padded.open_words)
        assert torch.equal(usual.logits, padded.logits)


@given(cases(dtype=torch.float32), st.randoms(use_true_random=False))
def test_batch_order_and_mates_change_nothing(case: Case, random: object) -> None:
    order = list(range(case.h.shape[0]))
    random.shuffle(order)  # type: ignore[attr-defined]
    usual = case.state()
    for chosen in (order, order[:1]):
        other = case.state(case.h[chosen], case.mask[chosen])
        # the open words bit for bit; attention weights and the last small product are dense, and
        # round with the number of rows
        rounding = 0.0 if case.layer.attention is None or case.tagging else 1e-5
        torch.testing.assert_close(
            other.sparse_vector, usual.sparse_vector[chosen], rtol=rounding, atol=rounding
        )
        torch.testing.assert_close(other.logits, usual.logits[chosen])


@given(cases())
def test_pairs_are_sorted_and_positive_and_sources_add_up(case: Case) -> None:
    words = case.state().open_words
    key = words.row * words.dictionary_size + words.word
    assert bool((key[1:] > key[:-1]).all())
    assert bool((words.value > 0).all())
    total = torch.zeros_like(words.value).index_add(0, words.sources.pair, words.sources.value)
    torch.testing.assert_close(total, words.value)
    assert torch.equal(words.counts().reshape(-1), torch.bincount(words.row, minlength=words.rows))


@given(
    st.lists(st.floats(-5, 5), min_size=1, max_size=30),
    st.floats(0, 3),
    st.sampled_from(["shift", "jump"]),
    st.sampled_from(["none", "log1p"]),
)
def test_the_gate_is_monotone(
    logits: list[float], theta: float, gate: str, saturation: str
) -> None:
    z = torch.tensor(sorted(logits), dtype=torch.float64)
    s = apply_gate(
        z,
        torch.full_like(z, theta),
        gate=gate,
        width=torch.tensor(1.0),
        window="rectangle",
        saturation=saturation,
    )
    assert bool((s[1:] >= s[:-1]).all())
    assert bool((s >= 0).all())
    assert bool((s[z <= theta] == 0).all())
