"""Sparsity terms, with and without a target."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from torch import Tensor

from lexical_sae.training.losses.sparsity import df_flops, gate_sparsity, l1_l0
from lexical_sae.training.losses.target import target_l0, target_l1
from tests.training.batches import Batch, batches
from tests.training.pairs import sparse, two_sources

WIDTH = 0.4


def _sigmoids(batch: Batch) -> Tensor:
    """[rows]: Σ σ((z − θ)/width) over the stored pairs."""
    return (torch.sigmoid((batch.logit - batch.theta) / WIDTH) * batch.kept).sum(1)


@given(batches())
def test_terms_equal_the_plain_formulas(batch: Batch) -> None:
    words, size = batch.open_words(), batch.value.shape[1]
    s, rows = batch.value, batch.rows
    both = s.sum(1) / size + 0.1 * (2 * torch.sigmoid(10 * s) - 1).sum(1) / size
    torch.testing.assert_close(l1_l0(words, rows=rows), batch.mean(both))
    gate = gate_sparsity(words, batch.theta, WIDTH, rows)
    torch.testing.assert_close(gate, batch.mean(_sigmoids(batch)) / size)

    frequency = batch.theta / 2  # any
    mean = s[batch.counted].mean(0) if batch.counted.any() else torch.zeros_like(s[0])
    a = frequency * mean
    plain = a.sum() / a.norm() / math.sqrt(size) if a.norm() > 0 else a.new_zeros(())
    torch.testing.assert_close(df_flops(words, frequency, rows), plain)


@given(batches())
def test_the_targets_log_the_excess_and_follow_the_logarithm(batch: Batch) -> None:
    s, z = batch.value.clone().requires_grad_(), batch.logit.clone().requires_grad_()
    theta = batch.theta.clone().requires_grad_()
    words, rows = sparse(s, batch.kept, z), batch.rows
    excess = math.log(100 / 40)
    found = target_l1(words, 100.0, 40.0, rows)
    plain = batch.mean((s * batch.kept).sum(1))
    if float(plain.detach()) > 0:
        assert float(found.detach()) == pytest.approx(excess)
        torch.testing.assert_close(
            torch.autograd.grad(found, s)[0], excess * torch.autograd.grad(plain.log(), s)[0]
        )
    found = target_l0(words, theta, WIDTH, 100.0, 40.0, rows)
    plain = batch.mean((torch.sigmoid((z - theta) / WIDTH) * batch.kept).sum(1))
    if float(plain.detach()) > 0:
        assert float(found.detach()) == pytest.approx(excess)
        for found_grad, plain_grad in zip(
            torch.autograd.grad(found, (z, theta)),
            torch.autograd.grad(plain.log(), (z, theta)),
            strict=True,
        ):
            torch.testing.assert_close(found_grad, excess * plain_grad)
    else:
        assert float(found.detach()) == 0


@pytest.mark.parametrize("open_ema", [0.0, 12.0, 40.0])
def test_at_or_below_the_target_there_is_no_value_and_no_gradient(open_ema: float) -> None:
    s = torch.rand(3, 5, requires_grad=True)
    theta = torch.rand(5, requires_grad=True)
    words = sparse(s, torch.ones(3, 5, dtype=torch.bool))
    term = target_l1(words, open_ema, 40.0) + target_l0(words, theta, WIDTH, open_ema, 40.0)
    assert float(term) == 0
    for grad in torch.autograd.grad(term, (s, theta)):
        assert float(grad.abs().max()) == 0


def test_closed_words_cost_nothing() -> None:
    closed = sparse(torch.zeros(2, 5), kept=torch.ones(2, 5, dtype=torch.bool))
    assert float(l1_l0(closed)) == 0
    assert float(df_flops(closed, torch.ones(5))) == 0
    assert float(target_l1(closed, 10.0, 5.0)) == 0
    assert float(gate_sparsity(sparse(torch.zeros(2, 5)), torch.zeros(5), WIDTH)) == 0


@pytest.mark.parametrize("value", [0.0, 1e-12])
def test_df_flops_leaves_a_batch_alone_that_opens_next_to_nothing(value: float) -> None:
    s = torch.full((2, 5), value, requires_grad=True)
    term = df_flops(sparse(s, torch.ones(2, 5, dtype=torch.bool)), torch.ones(5))
    assert float(term.detach()) == 0
    assert float(torch.autograd.grad(term, s)[0].abs().max()) == 0


def test_df_flops_prefers_few_and_rare_words() -> None:
    even = df_flops(sparse(torch.ones(1, 4)), torch.ones(4))
    one = df_flops(sparse(torch.tensor([[0.0, 3.0, 0.0, 0.0]])), torch.ones(4))
    assert float(even) == pytest.approx(1)
    assert float(one) == pytest.approx(0.5)  # 1/√V
    s = torch.ones(1, 4, requires_grad=True)
    term = df_flops(sparse(s), torch.tensor([1.0, 0.1, 0.1, 0.1]))
    (grad,) = torch.autograd.grad(term, s)
    # the ratio falls by lifting the largest entry or by closing the small ones
    assert grad[0, 0] < 0 < grad[0, 1]


def test_several_sources_count_with_the_largest_logit() -> None:
    z = torch.tensor([[1.0, 2.0]], dtype=torch.float64, requires_grad=True)
    second = torch.tensor([3.0, 0.5], dtype=torch.float64, requires_grad=True)
    theta = torch.tensor([0.5, 0.5], dtype=torch.float64)
    words = two_sources(sparse(z), second)
    found = gate_sparsity(words, theta, WIDTH)
    plain = torch.sigmoid((torch.tensor([3.0, 2.0], dtype=torch.float64) - 0.5) / WIDTH).sum() / 2
    torch.testing.assert_close(found, plain)
    of_z, of_second = torch.autograd.grad(found, (z, second))
    assert (of_z[0] != 0).tolist() == [False, True]
    assert (of_second != 0).tolist() == [True, False]


def test_a_threshold_below_0_counts_as_0_but_keeps_its_gradient() -> None:
    words = sparse(torch.tensor([[1.0]]))
    theta = torch.tensor([-3.0], requires_grad=True)
    term = gate_sparsity(words, theta, WIDTH)
    torch.testing.assert_close(term, gate_sparsity(words, torch.zeros(1), WIDTH))
    (grad,) = torch.autograd.grad(term, theta)
    assert float(grad) < 0  # a step raises it


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("masked", [True, False])
def test_gradients_are_right(masked: bool, seed: int) -> None:
    batch = Batch(4, 5, 0.8, masked, seed)
    kept, rows = batch.kept, batch.rows
    s = (batch.value + 0.3 * kept).requires_grad_()  # away from 0, where df_flops has a floor
    z, theta = batch.logit.clone().requires_grad_(), batch.theta.clone().requires_grad_()
    frequency = batch.theta / 2
    assert bool((kept & batch.counted[:, None]).any())
    assert torch.autograd.gradcheck(lambda x: l1_l0(sparse(x, kept), rows=rows), (s,))
    assert torch.autograd.gradcheck(lambda x: df_flops(sparse(x, kept), frequency, rows), (s,))
    assert torch.autograd.gradcheck(
        lambda x, t: gate_sparsity(sparse(batch.value, kept, x), t, WIDTH, rows), (z, theta)
    )


@given(batches())
def test_gradients_are_finite(batch: Batch) -> None:
    raw, rows = batch.value.clone().requires_grad_(), batch.rows
    words = sparse(raw, batch.kept, batch.logit)
    for term in (
        l1_l0(words, rows=rows),
        df_flops(words, batch.theta / 2, rows),
        target_l1(words, 9.0, 3.0, rows),
    ):
        (grad,) = torch.autograd.grad(term, raw, retain_graph=True)
        assert torch.isfinite(grad).all()
