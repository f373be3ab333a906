"""The contrast of the states that the guide reads: its plain form, and what it moves."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from lexical_sae.training.guide import DenseGuide
from lexical_sae.training.losses.contrast import TEMPERATURE, contrast
from lexical_sae.training.settings import Guide


def plain(states: Tensor, labels: Tensor) -> float:
    """Row by row, as it is written down."""
    rows = [[float(x) for x in row] for row in states]
    length = [math.sqrt(sum(x * x for x in row)) for row in rows]

    def near(i: int, j: int) -> float:
        dot = sum(a * b for a, b in zip(rows[i], rows[j], strict=True))
        return math.exp(dot / (length[i] * length[j]) / TEMPERATURE)

    found = []
    for i in range(len(rows)):
        others = [j for j in range(len(rows)) if j != i]
        own = [j for j in others if labels[j] == labels[i]]
        if own:
            whole = sum(near(i, j) for j in others)
            found.append(-sum(math.log(near(i, j) / whole) for j in own) / len(own))
    return sum(found) / len(rows)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 9), st.integers(1, 4), st.integers(0, 10_000))
def test_it_is_the_plain_form(rows: int, classes: int, seed: int) -> None:
    draw = torch.Generator().manual_seed(seed)
    states = torch.randn(rows, 5, dtype=torch.float64, generator=draw)
    labels = torch.randint(0, classes, (rows,), generator=draw)
    assert float(contrast(states, labels)) == pytest.approx(plain(states, labels), abs=1e-9)


def test_its_gradient_draws_a_class_together() -> None:
    torch.manual_seed(0)
    states = torch.randn(12, 6, dtype=torch.float64, requires_grad=True)
    labels = torch.arange(12) % 2
    assert torch.autograd.gradcheck(lambda x: contrast(x, labels), (states,))

    def apart(x: Tensor) -> float:
        unit = torch.nn.functional.normalize(x.detach(), dim=-1)
        cosine, same = unit @ unit.T, labels[:, None] == labels
        return float(cosine[~same].mean() - cosine[same].mean())

    (slope,) = torch.autograd.grad(contrast(states, labels), states)
    assert apart(states - 0.5 * slope) < apart(states)


def test_a_text_alone_or_without_company_is_no_nan() -> None:
    for rows in (1, 3):
        states = torch.randn(rows, 4, requires_grad=True)
        found = contrast(states, torch.arange(rows))
        found.backward()
        assert float(found.detach()) == 0.0
        assert states.grad is not None
        assert torch.isfinite(states.grad).all()


@pytest.mark.parametrize("weight", [0.0, 1.0])
def test_a_guide_says_it_only_where_it_is_asked_for(weight: float) -> None:
    guide = DenseGuide(Guide(contrast=weight), 8, 3, 0.0, seed=0)
    states, labels = torch.randn(6, 8), torch.tensor([0, 0, 1, 1, 2, 2])
    said = guide(states, torch.zeros(6, 3), labels)
    if weight:
        assert said.contrast is not None
        assert torch.equal(said.contrast, contrast(states, labels))
    else:
        assert said.contrast is None
