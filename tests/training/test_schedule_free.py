"""What is saved from a Schedule-Free run is its average, and resuming from it is exact."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from lexical_sae.training.optimizers import build_optimizer
from lexical_sae.training.schedule_free import evaluation_weights
from lexical_sae.training.settings import Settings

SETTINGS = Settings(optimizer="schedule_free", learning_rate=1e-2)


def _run() -> tuple[nn.Linear, Any]:
    torch.manual_seed(0)
    model = nn.Linear(6, 2)
    optimizer = build_optimizer([{"params": list(model.parameters())}], SETTINGS, warmup_steps=3)
    return model, optimizer


def _steps(model: nn.Linear, optimizer: Any, steps: range) -> None:
    optimizer.train()
    for i in steps:
        x = torch.randn(8, 6, generator=torch.Generator().manual_seed(i))
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), (x[:, 0] > 0).long()).backward()
        optimizer.step()


def _weights(model: nn.Module) -> Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def _average(model: nn.Linear, optimizer: Any, steps: range) -> Tensor:
    """x by its definition: the mean of the z sequence, each weighted by its squared rate."""
    x, total = _weights(model), 0.0
    for i in steps:
        _steps(model, optimizer, range(i, i + 1))
        group = optimizer.param_groups[0]
        total += group["lr_max"] ** 2
        z = torch.cat([optimizer.state[p]["z"].flatten() for p in model.parameters()])
        x = x + (z - x) * group["lr_max"] ** 2 / total
    return x


def test_the_block_shows_the_average_and_training_goes_on_from_where_it_was() -> None:
    model, optimizer = _run()
    x = _average(model, optimizer, range(20))
    y = _weights(model)
    with evaluation_weights(optimizer):
        saved = _weights(model)
    torch.testing.assert_close(saved, x, atol=1e-6, rtol=0)
    assert (saved - y).abs().max() > 1e-3
    torch.testing.assert_close(_weights(model), y, atol=1e-7, rtol=0)
    _steps(model, optimizer, range(20, 21))  # would raise in evaluation mode


def test_evaluation_mode_is_left_as_it_was_and_an_error_ends_it() -> None:
    model, optimizer = _run()
    _steps(model, optimizer, range(5))
    with pytest.raises(RuntimeError, match="inside"), evaluation_weights(optimizer):
        raise RuntimeError("inside")
    assert optimizer.param_groups[0]["train_mode"]
    optimizer.eval()
    x = _weights(model)
    with evaluation_weights(optimizer):
        assert torch.equal(_weights(model), x)
    assert torch.equal(_weights(model), x)
    assert not optimizer.param_groups[0]["train_mode"]


def test_resuming_goes_on_bit_by_bit_as_the_run_that_saved() -> None:
    model, optimizer = _run()
    _steps(model, optimizer, range(20))
    with evaluation_weights(optimizer):
        weights = copy.deepcopy(model.state_dict())
        state = copy.deepcopy(optimizer.state_dict())
    _steps(model, optimizer, range(20, 40))

    resumed, its_optimizer = _run()
    resumed.load_state_dict(weights)
    its_optimizer.load_state_dict(state)
    _steps(resumed, its_optimizer, range(20, 40))
    assert torch.equal(_weights(resumed), _weights(model))
    optimizer.eval()
    its_optimizer.eval()
    assert torch.equal(_weights(resumed), _weights(model))


def test_state_saved_outside_the_block_would_not_resume() -> None:
    """Why the optimiser's state belongs in the block: it says which weights the model holds."""
    model, optimizer = _run()
    _steps(model, optimizer, range(20))
    with evaluation_weights(optimizer):
        weights = copy.deepcopy(model.state_dict())
    state = copy.deepcopy(optimizer.state_dict())
    resumed, its_optimizer = _run()
    resumed.load_state_dict(weights)
    its_optimizer.load_state_dict(state)
    its_optimizer.train()
    assert (_weights(resumed) - _weights(model)).abs().max() > 1e-3


@pytest.fixture
def accelerator() -> Iterator[Any]:
    accelerate = pytest.importorskip("accelerate")
    yield accelerate.Accelerator()
    accelerate.state.AcceleratorState._reset_state(reset_partial_state=True)


def test_accelerates_wrapper_is_seen_through(accelerator: Any) -> None:
    model, optimizer = _run()
    wrapped = accelerator.prepare_optimizer(optimizer)
    assert wrapped is not optimizer
    _steps(model, optimizer, range(20))
    y = _weights(model)
    with evaluation_weights(wrapped):
        assert (_weights(model) - y).abs().max() > 1e-3
    torch.testing.assert_close(_weights(model), y, atol=1e-7, rtol=0)
    plain = accelerator.prepare_optimizer(torch.optim.AdamW(model.parameters()))
    before = _weights(model)
    with evaluation_weights(plain):
        assert torch.equal(_weights(model), before)
