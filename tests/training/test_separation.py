"""Separation of classes: centroids, both forms of the term, the learned margin."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from lexical_sae.training.losses.centroids import ClassCentroids
from lexical_sae.training.losses.margin import LearnedMargin
from lexical_sae.training.losses.separation import (
    separation_contrastive,
    separation_cosine,
)
from tests.training.batches import CLASSES, Batch, all_open, batches, two_classes
from tests.training.pairs import sparse


def _cos(x: Tensor, y: Tensor) -> Tensor:
    # as in the terms: lengths below a ten-thousandth of a logit count as that
    return (x * y).sum() / x.norm().clamp(min=1e-4) / y.norm().clamp(min=1e-4)


def _counted(batch: Batch, c: int | None = None) -> list[int]:
    """Rows (of class c) that count and have contributions."""
    found = batch.counted & (batch.attribution.abs().sum(1) > 0)
    if c is not None:
        found = found & (batch.row_class == c)
    return found.nonzero()[:, 0].tolist()


def _centroids(parts: list[Batch], words: int) -> ClassCentroids:
    centroids = ClassCentroids(CLASSES, words, decay=0.8).double()
    for batch in parts:
        a = batch.pairs(batch.attribution)
        centroids.update(a, batch.open_words(), batch.row_class, batch.rows)
    return centroids


@given(st.lists(batches(words=6), min_size=1, max_size=4))
def test_centroids_are_running_class_means(parts: list[Batch]) -> None:
    centroids = _centroids(parts, 6)
    for c in range(CLASSES):
        plain = None
        for batch in parts:
            mine = _counted(batch, c)
            if mine:
                mean = batch.attribution[mine].abs().mean(0)
                plain = mean if plain is None else 0.8 * plain + 0.2 * mean
        assert bool(centroids.seen[c]) == (plain is not None)
        expected = torch.zeros(6, dtype=torch.float64) if plain is None else plain
        torch.testing.assert_close(centroids.mean[c], expected)


@given(st.lists(batches(words=6), max_size=3), batches(words=6), st.sampled_from([0.0, 0.1, 0.7]))
def test_the_contrastive_form_equals_the_plain_formula(
    parts: list[Batch], batch: Batch, margin: float
) -> None:
    centroids = _centroids(parts, 6)
    hinges = []
    for r in _counted(batch):
        own, size = int(batch.row_class[r]), batch.attribution[r].abs()
        rivals = [c for c in range(CLASSES) if c != own and centroids.seen[c]]
        if rivals and centroids.seen[own]:
            nearest = max(float(_cos(size, centroids.mean[c])) for c in rivals)
            hinges.append(max(0.0, nearest - float(_cos(size, centroids.mean[own])) + margin))
    plain = sum(hinges) / len(hinges) if hinges else 0.0
    a, words = batch.pairs(batch.attribution).requires_grad_(), batch.open_words()
    found = separation_contrastive(a, words, batch.row_class, centroids, margin, batch.rows)
    assert float(found) == pytest.approx(plain, abs=1e-9)
    assert torch.isfinite(torch.autograd.grad(found, a)[0]).all()


@given(st.lists(batches(words=6), max_size=3), batches(words=6))
def test_the_cosine_form_equals_the_plain_formula(parts: list[Batch], batch: Batch) -> None:
    centroids = _centroids(parts, 6)
    cosines = []
    for c in range(CLASSES):
        mine = _counted(batch, c)
        if mine and centroids.seen[c]:
            live = batch.attribution[mine].abs().mean(0)
            others = [d for d in range(CLASSES) if d != c and centroids.seen[d]]
            cosines += [float(_cos(live, centroids.mean[d])) for d in others]
    plain = sum(cosines) / len(cosines) if cosines else 0.0
    a, words = batch.pairs(batch.attribution).requires_grad_(), batch.open_words()
    found = separation_cosine(a, words, batch.row_class, centroids, batch.rows)
    assert float(found) == pytest.approx(plain, abs=1e-9)
    assert torch.isfinite(torch.autograd.grad(found, a)[0]).all()


def test_classes_that_share_no_word_are_ideal() -> None:
    a, centroids = two_classes([1, 2, 0, 0], [0, 0, -3, 1])
    words, row_class = all_open(a), torch.tensor([0, 1])
    assert float(separation_cosine(a.reshape(-1), words, row_class, centroids)) == 0
    for margin in (0.1, 1.0):  # own cosine 1, other 0
        term = separation_contrastive(a.reshape(-1), words, row_class, centroids, margin)
        assert float(term) == pytest.approx(0)


def test_the_gradient_comes_through_the_live_batch_and_lowers_the_cosine() -> None:
    a, centroids = two_classes([1, 2, 1, 0.5], [1, 1, -3, 1])
    words, row_class = all_open(a), torch.tensor([0, 1])
    frozen = centroids.mean.clone()

    def cosine(x: Tensor) -> Tensor:
        return separation_cosine(x, words, row_class, centroids)

    def contrastive(x: Tensor) -> Tensor:
        return separation_contrastive(x, words, row_class, centroids, 0.5)

    for term in (cosine, contrastive):
        live = a.reshape(-1).clone().requires_grad_()
        before = term(live)
        assert float(before) > 0.1
        (grad,) = torch.autograd.grad(before, live)
        assert float(grad.abs().max()) > 1e-3
        assert float(term(live - 0.1 * grad)) < float(before) - 1e-3
        assert torch.autograd.gradcheck(term, (live,))
        # the step moved the live classes apart, against the same centroids
        apart = (live - 0.1 * grad).view(2, -1).abs()
        was = _cos(a[0].abs(), frozen[1]) + _cos(a[1].abs(), frozen[0])
        assert float(_cos(apart[0], frozen[1]) + _cos(apart[1], frozen[0])) < float(was)
    assert torch.equal(centroids.mean, frozen)
    assert not centroids.mean.requires_grad


@pytest.mark.parametrize("row_class", [[0, 0], [0, 1]])
def test_with_fewer_than_two_seen_classes_it_is_0_with_a_graph(row_class: list[int]) -> None:
    a = torch.rand(2, 4, dtype=torch.float64)
    words, own = all_open(a), torch.tensor(row_class)
    centroids = ClassCentroids(2, 4).double()
    only_first = torch.tensor([True, False])
    for _ in range(2):  # before anything was seen, and with class 0 alone
        live = a.reshape(-1).clone().requires_grad_()
        margin = LearnedMargin().double()
        for term in (
            separation_cosine(live, words, own, centroids),
            separation_contrastive(live, words, own, centroids, 0.1),
            separation_contrastive(live, words, own, centroids, margin),
        ):
            assert float(term) == 0
            term.backward()
        assert live.grad is not None
        assert float(live.grad.abs().max()) == 0
        assert margin.raw.grad is not None
        assert float(margin.raw.grad) == 0
        centroids.update(a.reshape(-1), words, torch.tensor([0, 0]), only_first)


def test_a_batch_without_any_pair_keeps_its_graph() -> None:
    _, centroids = two_classes([1, 2, 0, 0], [0, 0, -3, 1])
    a = torch.zeros(0, dtype=torch.float64, requires_grad=True)
    words = sparse(torch.zeros(2, 4, dtype=torch.float64))
    for term in (
        separation_cosine(a, words, torch.tensor([0, 1]), centroids),
        separation_contrastive(a, words, torch.tensor([0, 1]), centroids, 0.1),
    ):
        assert float(term) == 0
        assert term.requires_grad
        term.backward()
