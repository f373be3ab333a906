"""The range test finds the steep part, and leaves everything as it was."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from lexical_sae.training.optimizers import build_optimizer, parameter_groups
from lexical_sae.training.range_test import FALLBACK, RangeTest, learning_rate_range_test
from lexical_sae.training.settings import Settings

STEPS = 100


def _scripted(losses: list[float], steps: int = STEPS) -> RangeTest:
    """A range test whose losses are given."""
    model = nn.Linear(1, 1)
    return learning_rate_range_test(
        lambda i: losses[i] + 0.0 * model.weight.sum(),
        model,
        lambda rate: torch.optim.SGD(model.parameters(), lr=rate),
        steps=steps,
    )


def _fall_at(rate: float, noise: float = 0.0) -> list[float]:
    """A loss that falls from 0.7 to 0.2, fastest at `rate`."""
    x = np.linspace(-7, -2, STEPS)
    fall = 0.7 - 0.5 / (1 + np.exp(-5 * (x - math.log10(rate))))
    return list(fall + noise * np.random.default_rng(0).standard_normal(STEPS))


@pytest.mark.parametrize("rate", [3e-6, 3e-5, 3e-4])
def test_it_takes_the_steepest_point(rate: float) -> None:
    result = _scripted(_fall_at(rate))
    assert result.rate == pytest.approx(rate, rel=0.1)
    assert result.stopped_at is None
    assert (result.rates[0], result.rates[-1]) == pytest.approx((1e-7, 1e-2))
    assert np.diff(np.log(result.rates)) == pytest.approx(math.log(1e5) / 99)
    assert _scripted(_fall_at(rate, noise=0.05)).rate == pytest.approx(rate, rel=1.0)


def test_the_rate_is_clamped() -> None:
    assert _scripted(_fall_at(6e-3)).rate == 1e-3
    assert _scripted(_fall_at(4e-7)).rate == 1e-6


def test_a_loss_that_does_not_clearly_fall_gives_the_fallback() -> None:
    noise = np.random.default_rng(1)
    assert _scripted([0.7] * STEPS).rate == FALLBACK
    assert _scripted(list(np.linspace(0.5, 1.5, STEPS))).rate == FALLBACK
    found = [_scripted(list(0.7 + 0.1 * noise.standard_normal(STEPS))).rate for _ in range(20)]
    assert found == [FALLBACK] * 20


def test_a_loss_that_runs_away_ends_it_and_does_not_count() -> None:
    losses = _fall_at(1e-5)
    losses[70:80], losses[80:] = [0.75] * 10, [0.21] * 20  # a rise, and a steeper fall than before
    assert _scripted(losses).rate == pytest.approx(1e-5, rel=0.1)
    losses[80:] = [50.0] * 20
    result = _scripted(losses)
    assert result.stopped_at == 80
    assert len(result.losses) == len(result.rates) == 81
    assert result.rate == pytest.approx(1e-5, rel=0.1)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_loss_that_is_no_number_ends_it(bad: float) -> None:
    losses = _fall_at(1e-5)
    losses[70] = bad
    result = _scripted(losses)
    assert result.stopped_at == 70
    assert len(result.losses) == 70
    assert result.rate == pytest.approx(1e-5, rel=0.1)
    assert _scripted([bad] * STEPS).rate == FALLBACK


def test_every_group_gets_its_factor() -> None:
    model = nn.Module()
    model.backbone, model.head = nn.Linear(2, 2), nn.Linear(2, 2)
    built: list[Optimizer] = []
    seen: list[list[float]] = []

    def build(rate: float) -> Optimizer:
        settings = Settings(learning_rate=rate, head_rate_factor=10)
        built.append(build_optimizer(parameter_groups(model, settings), settings))
        built[0].register_step_pre_hook(
            lambda *_: seen.append([group["lr"] for group in built[0].param_groups])
        )
        return built[0]

    result = learning_rate_range_test(
        lambda _: model.head(model.backbone(torch.ones(1, 2))).square().sum(), model, build
    )
    for rate, lrs in zip(result.rates, seen, strict=False):
        assert lrs == pytest.approx([rate, rate, 10 * rate, 10 * rate])
    assert len(built) == 1
    assert len(seen) >= 50


class Busy(nn.Module):
    """Writes into one buffer, replaces another, has a frozen part in evaluation mode."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))
        self.drop = nn.Dropout(0.5)
        self.register_buffer("count", torch.zeros(()))
        self.register_buffer("ghost", torch.ones(2), persistent=False)
        self.margin = nn.Parameter(torch.ones(()))

    def forward(self, x: Tensor) -> Tensor:
        self.count = self.count + 1
        self.ghost.mul_(2)
        return self.drop(self.layers(x)) * self.margin


def _snapshot(model: nn.Module, outside: nn.Parameter) -> list[Any]:
    tensors = [*model.parameters(), *model.buffers(), outside]
    return [
        [t.detach().clone() for t in tensors],
        [id(t) for t in tensors],
        [None if p.grad is None else p.grad.clone() for p in [*model.parameters(), outside]],
        [m.training for m in model.modules()],
        torch.get_rng_state(),
        random.getstate(),
        [str(part) for part in np.random.get_state(legacy=False)["state"]["key"]],
    ]


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, Tensor):
        return torch.equal(one, other)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)


@pytest.mark.parametrize("optimizer", ["adamw", "schedule_free"])
@pytest.mark.parametrize("fails", [False, True])
def test_everything_is_as_before(optimizer: str, fails: bool) -> None:
    model, outside = Busy().eval(), nn.Parameter(torch.ones(()))
    model.layers.train()
    model.margin.grad = torch.tensor(3.0)
    settings = Settings(optimizer=optimizer)
    before = _snapshot(model, outside)
    modes = []

    def step_loss(i: int) -> Tensor:
        if fails and i == 30:
            raise RuntimeError("inside")
        modes.append(model.drop.training)
        x = torch.randn(8, 4) + random.random() + np.random.rand()
        return nn.functional.cross_entropy(model(x) * outside, torch.ones(8, dtype=torch.long))

    def build(rate: float) -> Optimizer:
        return build_optimizer([{"params": [*model.parameters(), outside]}], settings)

    run: Callable[[], RangeTest] = lambda: learning_rate_range_test(step_loss, model, build)  # noqa: E731
    if fails:
        with pytest.raises(RuntimeError, match="inside"):
            run()
    else:
        first = run()
        assert first.losses == run().losses  # the same batches by the same random numbers
        assert min(first.losses) < first.losses[0]  # it did train
    assert all(modes)
    assert _same(_snapshot(model, outside), before)


def test_what_cannot_work_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 20 steps"):
        _scripted([1.0] * 10, steps=10)
