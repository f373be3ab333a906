"""The gate: from a lexical logit z and its word's threshold θ to an activation s ≥ 0.

`shift` is relu(z − θ), continuous at the threshold. `jump` is z · 1[z > θ]; its threshold gets
a straight-through gradient from logits that fall inside a window around it. An optional
saturation log(1 + s) follows either.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

GATES = ("shift", "jump")
WINDOWS = ("rectangle", "sigmoid")
SATURATIONS = ("none", "log1p")

# Half-width of each window in units of its width: beyond it the kernel is 0 (rectangle) or cut off
# (sigmoid, where 1 % of its peak is left). Words within it are kept in training, so a wide one
# would undo the sparsity.
WINDOW_REACH = {"rectangle": 0.5, "sigmoid": 0.75}
SIGMOID_STEEPNESS = 8.0


def nonnegative_threshold(raw: Tensor) -> Tensor:
    """θ clamped at 0, but with the gradient of the identity, where clamping would have none."""
    return raw + (raw.clamp(min=0) - raw).detach()


def window_kernel(distance: Tensor, width: Tensor, window: str) -> Tensor:
    """K((z − θ)/width), the density whose integral replaces the step; distance = z − θ."""
    x = distance / width
    if window == "rectangle":
        return (x.abs() <= WINDOW_REACH[window]).to(distance.dtype)
    s = torch.sigmoid(SIGMOID_STEEPNESS * x)
    density = SIGMOID_STEEPNESS * s * (1 - s)
    return torch.where(x.abs() <= WINDOW_REACH[window], density, torch.zeros_like(x))


class _JumpGate(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, theta: Tensor, width: Tensor, window: str) -> Tensor:
        ctx.save_for_backward(z, theta, width)
        ctx.window = window
        return z * (z > theta)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        z, theta, width = ctx.saved_tensors
        grad_z = grad * (z > theta)
        # d/dθ of z·step(z − θ), the step's derivative replaced by the window: −(θ/ε)·K
        grad_theta = -grad * theta / width * window_kernel(z - theta, width, ctx.window)
        return grad_z, grad_theta, None, None


def apply_gate(
    z: Tensor, theta: Tensor, *, gate: str, width: Tensor, window: str, saturation: str
) -> Tensor:
    """z [P], theta [P] (each pair's threshold) → s [P]."""
    if gate == "jump":
        s: Tensor = _JumpGate.apply(z, theta, width, window)
    else:
        s = torch.relu(z - theta)
    return torch.log1p(s) if saturation == "log1p" else s
