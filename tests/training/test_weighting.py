"""Uncertainty weighting."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lexical_sae.training.losses.weighting import UncertaintyWeights


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=4), st.lists(st.floats(-3, 3), min_size=4))
def test_value_and_gradients_are_those_of_the_formula(losses: list[float], v: list[float]) -> None:
    names = ["a", "b", "c", "d"]
    weights = UncertaintyWeights(names).double()
    with torch.no_grad():
        weights.v.copy_(torch.tensor(v[:4], dtype=torch.float64))
    L = torch.tensor(losses, dtype=torch.float64, requires_grad=True)
    given_terms = dict(zip(names, L, strict=False))
    found = weights.combine(given_terms)
    plain_v = weights.v.detach().clone().requires_grad_()
    used = plain_v[: len(losses)]
    plain = (0.5 * torch.exp(-used) * L + 0.5 * used).sum()
    torch.testing.assert_close(found, plain)
    for mine, wanted in zip(
        torch.autograd.grad(found, (L, weights.v)),
        torch.autograd.grad(plain, (L, plain_v)),
        strict=True,
    ):
        torch.testing.assert_close(mine, wanted)


@pytest.mark.parametrize("loss", [0.0, -2.0, 1e4])
def test_it_stays_finite_and_can_come_back(loss: float) -> None:
    weights = UncertaintyWeights(["a"])
    optimizer = torch.optim.SGD(weights.parameters(), lr=0.5)
    for _ in range(60):
        optimizer.zero_grad()
        total = weights.combine({"a": torch.tensor(loss)})
        total.backward()
        optimizer.step()
        assert math.isfinite(float(total))
    assert 0.001 < weights.weights()["a"] < 210
    # below the bound the gradient still points somewhere
    with torch.no_grad():
        weights.v.fill_(-9.0)
    (grad,) = torch.autograd.grad(weights.combine({"a": torch.tensor(5.0)}), weights.v)
    assert float(grad) == pytest.approx(0.5 - 2.5 * math.exp(6), rel=1e-5)


def test_it_settles_where_each_term_counts_one_half() -> None:
    weights = UncertaintyWeights(["large", "small"])
    optimizer = torch.optim.SGD(weights.parameters(), lr=0.2)
    terms = {"large": torch.tensor(8.0), "small": torch.tensor(0.25)}
    for _ in range(300):
        optimizer.zero_grad()
        weights.combine(terms).backward()
        optimizer.step()
    # v = log L, so that exp(−v) · L = 1
    torch.testing.assert_close(
        weights.v.detach(), torch.tensor([8.0, 0.25]).log(), atol=1e-3, rtol=0
    )


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ValueError, match="expected some of"):
        UncertaintyWeights(["a"]).combine({"b": torch.tensor(1.0)})
    with pytest.raises(ValueError, match="expected some of"):
        UncertaintyWeights(["a"]).combine({})
