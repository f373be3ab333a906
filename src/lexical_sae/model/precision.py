"""Full precision: gate, head and attribution never run in half precision, autocast or not."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

import torch
from torch import Tensor, nn

M = TypeVar("M", bound=nn.Module)
P = ParamSpec("P")
R = TypeVar("R")


def in_full_precision(
    method: Callable[Concatenate[M, P], R],
) -> Callable[Concatenate[M, P], R]:
    """Run a module's method in the precision of its parameters, also inside autocast: in bf16 an
    attribution loses most of its digits."""

    @functools.wraps(method)
    def run(module: M, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with torch.autocast(next(module.parameters()).device.type, enabled=False):
            return method(module, *args, **kwargs)

    return run


def check_finite(logits: Tensor) -> None:
    if not bool(torch.isfinite(logits).all()):
        raise ValueError(
            "The model's logits are not all finite numbers, so its weights are damaged; train it "
            "again or restore the original files."
        )


def check_precision(weight: Tensor) -> None:
    if weight.dtype not in (torch.float32, torch.float64):
        raise ValueError(
            f"The lexical layer is in {weight.dtype}; sums are exact in float32 and float64 only. "
            "Convert the backbone alone: model.backbone.to(torch.bfloat16)."
        )
