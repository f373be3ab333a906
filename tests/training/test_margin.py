"""The learned margin moves both ways."""

from __future__ import annotations

import pytest
import torch

from lexical_sae.training.losses.margin import LearnedMargin
from lexical_sae.training.losses.separation import class_gap, separation_contrastive
from tests.training.batches import all_open, two_classes


def _margin_after(margin: LearnedMargin, steps: int = 150) -> float:
    """Rows of class 0 whose gaps to class 1 are spread out; only the margin learns."""
    _, centroids = two_classes([1, 0], [0, 1])
    angle = torch.linspace(0.0, 1.2, 21, dtype=torch.float64)
    a = torch.stack([angle.cos(), angle.sin()], 1)
    words, own = all_open(a), torch.zeros(21, dtype=torch.long)
    optimizer = torch.optim.SGD(margin.parameters(), lr=0.5)
    for _ in range(steps):
        optimizer.zero_grad()
        term = separation_contrastive(a.reshape(-1), words, own, centroids, margin)
        gap, _ = class_gap(a.reshape(-1), words, own, centroids)
        plain = torch.relu(gap + margin().detach()).mean()
        assert float(term) == pytest.approx(float(plain))  # the move adds nothing to the value
        term.backward()
        optimizer.step()
    return float(margin())


def test_the_margin_grows_where_it_is_easy_and_shrinks_where_it_is_hard() -> None:
    low = _margin_after(LearnedMargin(0.01, target_rate=0.5).double())
    high = _margin_after(LearnedMargin(1.5, target_rate=0.5).double())
    # both end at the median of own cosine − other cosine
    angle = torch.linspace(0.0, 1.2, 21)
    median = float((angle.cos() - angle.sin()).median())
    assert low == pytest.approx(median, abs=0.1)
    assert high == pytest.approx(median, abs=0.1)


def test_a_plain_tensor_margin_has_the_gradient_of_the_hinge() -> None:
    a, centroids = two_classes([1, 2, 1, 0.5], [1, 1, -3, 1])
    margin = torch.tensor(0.9, dtype=torch.float64, requires_grad=True)
    term = separation_contrastive(
        a.reshape(-1), all_open(a), torch.tensor([0, 1]), centroids, margin
    )
    assert float(torch.autograd.grad(term, margin)[0]) == pytest.approx(1.0)


def test_bad_margins_are_refused() -> None:
    with pytest.raises(ValueError, match="expected a margin above 0"):
        LearnedMargin(0.0)
