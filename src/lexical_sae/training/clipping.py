"""Gradients clipped part by part: backbone, dictionary, head and gate each by their own norm.

Clipped as one, a steep step of the words' head shrinks the backbone's share of that step with it,
and the backbone learns more slowly than that of the dense twin (docs/results.md).
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from lexical_sae.training.optimizers import part_of


def clip_by_part(parameters: Iterable[tuple[str, nn.Parameter]], most: float) -> Tensor:
    """Scale the gradients of each part down to the norm `most`; the norm of all before that."""
    parts: dict[str, list[nn.Parameter]] = {}
    for name, p in parameters:
        if p.grad is not None:
            parts.setdefault(part_of(name), []).append(p)
    norms = [nn.utils.clip_grad_norm_(part, most) for part in parts.values()]
    return torch.stack(norms).norm() if norms else torch.zeros(())
