"""Open rates and the term that revives words that never open."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lexical_sae.training.losses.frequencies import OpenRates, frequency_penalty
from tests.training.batches import Batch, batches
from tests.training.pairs import sparse


@given(st.lists(batches(words=7), min_size=1, max_size=4))
def test_rates_are_the_running_share_of_rows(parts: list[Batch]) -> None:
    rates, plain = OpenRates(7, decay=0.9).double(), None
    for batch in parts:
        rates.update(batch.open_words(), batch.rows)
        if batch.counted.any():
            share = (batch.value[batch.counted] > 0).double().mean(0)
            plain = share if plain is None else 0.9 * plain + 0.1 * share
    plain = torch.zeros(7, dtype=torch.float64) if plain is None else plain
    torch.testing.assert_close(rates.rate, plain)
    torch.testing.assert_close(rates.open_words, plain.sum())


def test_the_penalty_equals_the_plain_formula() -> None:
    V, target, spread = 4, 8.0, 2.0
    limit = 0.1 * target / V  # 0.2
    rate = torch.tensor([0.0, 0.05, 0.2, 0.9])
    theta = torch.tensor([3.0, 1.0, 5.0, 5.0], requires_grad=True)
    found = frequency_penalty(rate, theta, spread, target, open_ema=3.0)
    plain = (1.0 * 3.0 / spread + (1 - 0.05 / limit) * 1.0 / spread) / V
    assert float(found) == pytest.approx(plain)
    (grad,) = torch.autograd.grad(found, theta)
    torch.testing.assert_close(grad, torch.tensor([1 / 8, 0.75 / 8, 0.0, 0.0]))
    after = frequency_penalty(rate, theta - grad, spread, target, open_ema=3.0)
    assert float(after) < float(found)


@pytest.mark.parametrize("open_ema", [8.0, 50.0])
def test_nothing_is_revived_beyond_the_target(open_ema: float) -> None:
    theta = torch.ones(4, requires_grad=True)
    term = frequency_penalty(torch.zeros(4), theta, 1.0, 8.0, open_ema=open_ema)
    assert float(term) == 0
    assert float(torch.autograd.grad(term, theta)[0].abs().max()) == 0


def test_it_is_0_when_every_word_does_its_share_or_cannot_open() -> None:
    theta = torch.ones(4, requires_grad=True)
    assert float(frequency_penalty(torch.full((4,), 0.5), theta, 1.0, 8.0, open_ema=1.0)) == 0
    term = frequency_penalty(
        torch.zeros(4), theta, 1.0, 8.0, open_ema=1.0, keep=torch.tensor([True, False, False, True])
    )
    (grad,) = torch.autograd.grad(term, theta)
    assert (grad > 0).tolist() == [True, False, False, True]


def test_it_is_bounded_and_stops_at_0() -> None:
    theta = torch.tensor([1e6, -2.0, 0.0, 1.0], requires_grad=True)
    rate = torch.zeros(4, requires_grad=True)
    term = frequency_penalty(rate, theta, 1.0, 8.0, open_ema=1.0)
    assert float(term) == pytest.approx((10 + 1) / 4)
    of_theta, of_rate = torch.autograd.grad(term, (theta, rate), allow_unused=True)
    assert (of_theta > 0).tolist() == [True, False, False, True]
    assert of_rate is None


def test_rates_count_open_pairs_only() -> None:
    rates = OpenRates(3)
    rates.update(sparse(torch.tensor([[1.0, 0.0, 0.0]]), torch.ones(1, 3, dtype=torch.bool)))
    assert rates.rate.tolist() == [1, 0, 0]
