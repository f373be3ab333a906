"""Gates: values, gradients, and the straight-through window."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from lexical_sae.model.gate import apply_gate, nonnegative_threshold, window_kernel


def _gate(z: Tensor, theta: Tensor, kind: str, window: str = "rectangle") -> Tensor:
    width = torch.tensor(0.5, dtype=z.dtype)
    return apply_gate(z, theta, gate=kind, width=width, window=window, saturation="none")


def test_values() -> None:
    z, theta = torch.tensor([-1.0, 0.5, 1.0, 3.0]), torch.tensor([0.0, 1.0, 1.0, 1.0])
    assert _gate(z, theta, "shift").tolist() == [0.0, 0.0, 0.0, 2.0]
    assert _gate(z, theta, "jump").tolist() == [0.0, 0.0, 0.0, 3.0]


@pytest.mark.parametrize("kind", ["shift", "jump"])
@pytest.mark.parametrize("saturation", ["none", "log1p"])
def test_gradient_of_z_away_from_the_threshold(kind: str, saturation: str) -> None:
    z = torch.tensor([-2.0, 0.2, 1.9, 4.0], dtype=torch.float64, requires_grad=True)
    theta = torch.ones(4, dtype=torch.float64)
    width = torch.tensor(0.5, dtype=torch.float64)

    def run(x: Tensor) -> Tensor:
        return apply_gate(
            x, theta, gate=kind, width=width, window="rectangle", saturation=saturation
        )

    assert torch.autograd.gradcheck(run, (z,))


def test_shift_gives_the_threshold_its_true_gradient() -> None:
    z = torch.tensor([0.2, 1.9], dtype=torch.float64)
    theta = torch.tensor([1.0, 1.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda t: _gate(z, t, "shift"), (theta,))


@pytest.mark.parametrize("window", ["rectangle", "sigmoid"])
def test_jump_gives_the_threshold_a_gradient_inside_the_window_only(window: str) -> None:
    """−(θ/ε)·K((z − θ)/ε), for words just closed as well as just open."""
    z = torch.tensor([0.9, 1.1, -3.0, 9.0])
    theta = torch.full((4,), 1.0, requires_grad=True)
    _gate(z, theta, "jump", window).sum().backward()
    kernel = window_kernel(z - 1.0, torch.tensor(0.5), window)
    torch.testing.assert_close(theta.grad, -1.0 / 0.5 * kernel)
    assert theta.grad[0] < 0
    assert theta.grad[1] < 0
    assert theta.grad[2:].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("window", ["rectangle", "sigmoid"])
def test_the_window_is_a_density(window: str) -> None:
    x = torch.linspace(-10, 10, 200_001, dtype=torch.float64)
    width = torch.tensor(0.7, dtype=torch.float64)
    area = torch.trapezoid(window_kernel(x, width, window), x) / 0.7
    assert abs(float(area) - 1) < 0.02


def test_a_threshold_below_zero_acts_as_zero_and_can_rise_again() -> None:
    raw = torch.tensor([-0.5, 0.5], requires_grad=True)
    theta = nonnegative_threshold(raw)
    assert theta.tolist() == [0.0, 0.5]
    theta.sum().backward()
    assert raw.grad.tolist() == [1.0, 1.0]
