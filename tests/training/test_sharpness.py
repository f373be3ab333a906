"""Sharpness, anchor and content: shares and shapes of the contributions of each row."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from torch import Tensor

from lexical_sae.training.losses.anchor import anchor, overlap
from lexical_sae.training.losses.content import content
from lexical_sae.training.losses.sharpness import sharpness
from tests.training.batches import Batch, batches
from tests.training.pairs import sparse


def _plain_sharpness(a: Tensor, s: Tensor) -> Tensor:
    n, size = int((s > 0).sum()), a.abs()
    if n < 2 or float(size.sum()) == 0:
        return a.new_zeros(())
    hoyer = (math.sqrt(n) - size.sum() / size.norm()) / (math.sqrt(n) - 1)
    return 1 - hoyer


@given(batches())
def test_sharpness_equals_the_plain_formula(batch: Batch) -> None:
    found = sharpness(batch.pairs(batch.attribution), batch.open_words(), batch.rows)
    plain = [_plain_sharpness(a, s) for a, s in zip(batch.attribution, batch.value, strict=True)]
    torch.testing.assert_close(found, batch.mean(torch.stack(plain)))


def test_sharpness_is_0_for_one_carrier_and_1_for_equal_ones() -> None:
    words = sparse(torch.ones(1, 4))
    assert float(sharpness(torch.tensor([0.0, -3.0, 0.0, 0.0]), words)) == pytest.approx(0)
    assert float(sharpness(torch.tensor([2.0, -2.0, 2.0, 2.0]), words)) == pytest.approx(1)


def test_closed_pairs_inside_the_window_do_not_count_as_open() -> None:
    value = torch.tensor([[1.0, 1.0, 0.0, 0.0]])
    words = sparse(value, kept=torch.ones(1, 4, dtype=torch.bool))
    # two open words that carry the same are as flat as can be, whatever else is stored
    assert float(sharpness(torch.tensor([2.0, 2.0, 0.0, 0.0]), words)) == pytest.approx(1)


@given(batches())
def test_shares_equal_the_plain_formula(batch: Batch) -> None:
    inside = batch.logit > 1.2  # any set
    size = batch.attribution.abs()
    total = size.sum(1)
    plain = torch.where(total > 0, (size * ~inside).sum(1) / total.clamp(min=1e-30), 0.0)
    plain = plain * (total / 1e-4).clamp(max=1)  # below a ten-thousandth of a logit it fades
    given_pairs = batch.pairs(batch.attribution), batch.pairs(inside), batch.open_words()
    torch.testing.assert_close(anchor(*given_pairs, batch.rows), batch.mean(plain))
    torch.testing.assert_close(content(*given_pairs, batch.rows), batch.mean(plain))
    torch.testing.assert_close(overlap(*given_pairs), 1 - plain)


def test_anchor_is_0_inside_and_1_outside() -> None:
    words, a = sparse(torch.ones(2, 3)), torch.tensor([1.0, -2.0, 3.0, 1.0, 1.0, 1.0])
    everything = torch.ones(6, dtype=torch.bool)
    assert float(anchor(a, everything, words)) == 0
    assert float(anchor(a, ~everything, words)) == pytest.approx(1)
    half = torch.tensor([True, True, True, False, False, False])
    assert float(content(a, half, words)) == pytest.approx(0.5)
    assert not overlap(a.requires_grad_(), half, words).requires_grad


def _terms(batch: Batch) -> tuple[Callable[[Tensor], Tensor], ...]:
    words, inside = batch.open_words(), batch.pairs(batch.logit > 1.2)
    return (
        lambda x: sharpness(x, words, batch.rows),
        lambda x: anchor(x, inside, words, batch.rows),
        lambda x: content(x, inside, words, batch.rows),
    )


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("masked", [True, False])
def test_gradients_are_right(masked: bool, seed: int) -> None:
    batch = Batch(4, 5, 0.8, masked, seed)
    away = batch.pairs(batch.attribution)
    away = torch.where(away.abs() < 1e-2, 0.5, away).requires_grad_()  # |A| is not smooth at 0
    assert len(away) > 0
    for term in _terms(batch):
        assert torch.autograd.gradcheck(term, (away,))


@given(batches())
def test_gradients_are_finite(batch: Batch) -> None:
    a = batch.pairs(batch.attribution).requires_grad_()
    for term in _terms(batch):
        (grad,) = torch.autograd.grad(term(a), a)
        assert torch.isfinite(grad).all()


def test_a_row_with_next_to_no_contribution_does_not_explode() -> None:
    words = sparse(torch.ones(1, 3))
    a = torch.tensor([1e-20, 2e-20, 0.0], requires_grad=True)
    for term in (
        sharpness(a, words),
        anchor(a, torch.tensor([True, False, False]), words),
    ):
        (grad,) = torch.autograd.grad(term, a)
        assert grad.abs().max() <= 1e4


def test_a_step_makes_it_sharper_and_moves_mass_inside() -> None:
    words, inside = sparse(torch.ones(1, 3)), torch.tensor([True, False, True])
    for term in (lambda x: sharpness(x, words), lambda x: anchor(x, inside, words)):
        a = torch.tensor([1.0, -0.8, 0.5], requires_grad=True)
        before = term(a)
        (grad,) = torch.autograd.grad(before, a)
        assert float((before - term(a - 0.05 * grad)).detach()) > 0
