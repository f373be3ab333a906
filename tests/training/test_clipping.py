"""Gradients clipped part by part."""

from __future__ import annotations

import torch
from torch import nn

from lexical_sae.training.clipping import clip_by_part


def parameter(*gradient: float) -> nn.Parameter:
    p = nn.Parameter(torch.zeros(len(gradient)))
    p.grad = torch.tensor(gradient)
    return p


def test_a_steep_head_leaves_the_backbone_its_step() -> None:
    backbone, second, head = parameter(0.3, 0.4), parameter(0.0), parameter(30.0, 40.0)
    named = [("backbone.a", backbone), ("backbone.b", second), ("head.weight", head)]
    norm = clip_by_part(named, 1.0)
    assert backbone.grad is not None
    assert head.grad is not None
    assert backbone.grad.tolist() == torch.tensor([0.3, 0.4]).tolist()
    torch.testing.assert_close(head.grad, torch.tensor([0.6, 0.8]))
    torch.testing.assert_close(norm, torch.tensor((50.0**2 + 0.5**2) ** 0.5))


def test_a_part_is_clipped_as_one() -> None:
    parts = [parameter(3.0), parameter(4.0)]
    clip_by_part([("backbone.a", parts[0]), ("backbone.b", parts[1])], 1.0)
    found = torch.cat([p.grad for p in parts if p.grad is not None])
    torch.testing.assert_close(found, torch.tensor([0.6, 0.8]))


def test_parameters_without_gradient_do_not_count() -> None:
    frozen = nn.Parameter(torch.zeros(2))
    assert float(clip_by_part([("lexical.weight", frozen)], 1.0)) == 0
    assert frozen.grad is None
