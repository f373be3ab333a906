"""The custom backward pass, against finite differences and against the gathered form."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lexical_sae.model.pair_logits import gathered_products, pair_logits, sampled_products


def _problem(seed: int, dtype: torch.dtype, pairs: int = 9) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(seed)
    h = torch.randn(5, 4, generator=generator, dtype=dtype)
    E = torch.randn(7, 4, generator=generator, dtype=dtype)
    b = torch.randn(7, generator=generator, dtype=dtype)
    keys = torch.randperm(35, generator=generator)[:pairs]
    return h, E, b, keys // 7, keys % 7


def test_gradcheck_with_pairs_in_any_order() -> None:
    h, E, b, position, word = _problem(0, torch.float64)
    inputs = [t.requires_grad_() for t in (h, E, b)]
    assert torch.autograd.gradcheck(lambda *x: pair_logits(*x, position, word), inputs)


def test_gradcheck_without_a_bias() -> None:
    h, E, _, position, word = _problem(1, torch.float64)
    inputs = [t.requires_grad_() for t in (h, E)]
    assert torch.autograd.gradcheck(lambda *x: pair_logits(*x, None, position, word), inputs)


def test_gradcheck_without_pairs() -> None:
    h, E, b, *_ = _problem(0, torch.float64)
    none = torch.empty(0, dtype=torch.long)
    inputs = [t.requires_grad_() for t in (h, E, b)]
    z = pair_logits(*inputs, none, none)
    z.sum().backward()
    assert z.numel() == 0
    assert all(float(t.grad.abs().sum()) == 0 for t in inputs)


@settings(deadline=None, max_examples=50)
@given(seed=st.integers(0, 10**6), pairs=st.integers(0, 35))
def test_sampled_form_equals_gathered_form(seed: int, pairs: int) -> None:
    h, E, _, position, word = _problem(seed, torch.float64, pairs)
    order = torch.argsort(position)
    position, word = position[order], word[order]
    torch.testing.assert_close(
        sampled_products(h, E, position, word), gathered_products(h, E, position, word)
    )


def test_a_pair_s_bits_do_not_depend_on_the_other_pairs() -> None:
    h, E, b, position, word = _problem(3, torch.float32, pairs=20)
    together = pair_logits(h, E, b, position, word)
    alone = [pair_logits(h, E, b, position[i : i + 1], word[i : i + 1]) for i in range(20)]
    assert torch.equal(together, torch.cat(alone))
