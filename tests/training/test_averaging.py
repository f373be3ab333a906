"""The average of the weights: what it holds, and that it leaves no trace in the model."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from lexical_sae.training.averaging import WeightAverage


def _model(value: float = 0.0) -> nn.Linear:
    model = nn.Linear(3, 2)
    with torch.no_grad():
        for p in model.parameters():
            p.fill_(value)
    return model


def _walk(model: nn.Module, generator: torch.Generator) -> None:
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.randn(p.shape, generator=generator))


def test_a_short_run_is_not_half_initialisation() -> None:
    model = _model(0.0)
    average = WeightAverage(model, 0.999, steps=650)
    with torch.no_grad():
        model.weight.fill_(1.0)
    average.update(model)  # from here on, the model never is what it was
    with average.applied(model):
        assert torch.equal(model.weight, torch.ones(2, 3))
    assert average.decay == pytest.approx(1 - 10 / 650)
    assert WeightAverage(model, 0.999, steps=1_000_000).decay == 0.999
    assert WeightAverage(model, 0.999, steps=5).decay == 0.0


def test_it_is_the_normalised_exponential_average() -> None:
    model, generator = _model().double(), torch.Generator().manual_seed(0)
    average = WeightAverage(model, 0.9, steps=10_000)
    seen = []
    for _ in range(7):
        _walk(model, generator)
        average.update(model)
        seen.append(model.weight.detach().clone())
    weights = torch.tensor([0.9 ** (6 - i) for i in range(7)], dtype=torch.float64)
    expected = sum(w * s for w, s in zip(weights / weights.sum(), seen, strict=True))
    with average.applied(model):
        torch.testing.assert_close(model.weight.detach(), expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_old_weights_come_back_bit_by_bit_also_after_an_error(dtype: torch.dtype) -> None:
    model, generator = _model().to(dtype), torch.Generator().manual_seed(0)
    average = WeightAverage(model, 0.9, steps=100)
    for _ in range(3):
        _walk(model, generator)
        average.update(model)
    before = [p.detach().clone() for p in model.parameters()]
    with pytest.raises(RuntimeError, match="inside"), average.applied(model):  # noqa: PT012
        assert not torch.equal(model.weight, before[0])
        raise RuntimeError("inside")
    assert all(torch.equal(p, old) for p, old in zip(model.parameters(), before, strict=True))


def test_half_precision_weights_are_averaged_in_full() -> None:
    model = _model(1.0).bfloat16()
    average = WeightAverage(model, 0.999, steps=10**6)
    average.update(model)
    with torch.no_grad():
        model.weight.fill_(2.0)
    for _ in range(100):
        average.update(model)
    state = average.state_dict()["average.weight"]
    assert state.dtype == torch.float32
    share = (1 - 0.999**100) / (1 - 0.999**101)  # of the twos
    torch.testing.assert_close(state, torch.full((2, 3), 1 + share), atol=1e-5, rtol=0)


def test_frozen_weights_are_not_its_business() -> None:
    model = _model(1.0)
    model.bias.requires_grad_(False)
    average = WeightAverage(model, 0.9, steps=100)
    average.update(model)
    assert set(average.state_dict()) == {"updates", "average.weight"}


def test_resuming_is_exact() -> None:
    model, generator = _model(), torch.Generator().manual_seed(0)
    whole = WeightAverage(model, 0.99, steps=200)
    for _ in range(5):
        _walk(model, generator)
        whole.update(model)
    state = whole.state_dict()
    assert all(isinstance(value, torch.Tensor) for value in state.values())
    resumed = WeightAverage(model, 0.99, steps=200)
    resumed.load_state_dict(state)
    for _ in range(5):
        _walk(model, generator)
        whole.update(model)
        resumed.update(model)
    one, other = whole.state_dict(), resumed.state_dict()
    assert all(torch.equal(one[key], other[key]) for key in one)
    assert not torch.equal(one["average.weight"], state["average.weight"])  # saved by value


def test_the_average_of_another_model_is_refused() -> None:
    average = WeightAverage(_model(), 0.9, steps=100)
    with pytest.raises(ValueError, match=r"average\.bias"):
        average.load_state_dict({"updates": torch.tensor(1), "average.weight": torch.ones(2, 3)})
    with pytest.raises(ValueError, match=r"shape \(4, 3\); expected \(2, 3\)"):
        average.load_state_dict(WeightAverage(nn.Linear(3, 4), 0.9, 100).state_dict())
    with pytest.raises(ValueError, match="no parameter weight"):
        average.update(nn.Sequential(nn.Linear(3, 2)))
