"""Small random batches of open words with attributions, sparse and dense side by side."""

from __future__ import annotations

import torch
from hypothesis import strategies as st
from torch import Tensor

import tests.properties.cases  # noqa: F401  (the hypothesis profile)
from lexical_sae.model.open_words import OpenWords
from lexical_sae.training.losses.centroids import ClassCentroids
from tests.training.pairs import sparse

CLASSES = 3


class Batch:
    """Dense [rows, V] matrices; no dataclass, so that a failure prints the line below."""

    def __init__(self, rows: int, words: int, density: float, masked: bool, seed: int) -> None:
        self.line = f"Batch({rows}, {words}, {density}, {masked}, {seed})"
        make = torch.Generator().manual_seed(seed)

        def uniform(*shape: int) -> Tensor:
            return torch.rand(*shape, generator=make, dtype=torch.float64)

        self.theta = 0.5 + uniform(words)  # [V]
        self.logit = 0.1 + 2.5 * uniform(rows, words)
        self.kept = uniform(rows, words) < density
        self.kept[uniform(rows) < 0.2] = False  # rows without any open word
        # as the jump gate in training: pairs below θ are stored with value 0
        self.value = self.logit * (self.logit > self.theta) * self.kept
        self.attribution = self.value * torch.randn(
            rows, words, generator=make, dtype=torch.float64
        )
        self.row_class = torch.randint(CLASSES, (rows,), generator=make)
        self.rows = uniform(rows) < 0.7 if masked else None
        self.counted = torch.ones(rows, dtype=torch.bool) if self.rows is None else self.rows

    def __repr__(self) -> str:
        return self.line

    def open_words(self) -> OpenWords:
        return sparse(self.value, self.kept, self.logit)

    def pairs(self, dense: Tensor) -> Tensor:
        """[P]: the entries of a dense matrix at the stored pairs."""
        return dense[self.kept]

    def mean(self, per_row: Tensor) -> Tensor:
        """The plain mean over the rows that count."""
        kept = per_row[self.counted]
        return kept.mean() if len(kept) else per_row.new_zeros(())


def batches(words: int | None = None) -> st.SearchStrategy[Batch]:
    return st.builds(
        Batch,
        rows=st.integers(1, 6),
        words=st.integers(2, 12) if words is None else st.just(words),
        density=st.sampled_from([0.0, 0.3, 0.8, 1.0]),
        masked=st.booleans(),
        seed=st.integers(0, 2**31),
    )


def two_classes(first: list[float], second: list[float]) -> tuple[Tensor, ClassCentroids]:
    """Attributions [2, V] of one row for each of two classes, and centroids equal to them."""
    a = torch.tensor([first, second], dtype=torch.float64)
    centroids = ClassCentroids(2, a.shape[1]).double()
    centroids.update(a.reshape(-1), all_open(a), torch.tensor([0, 1]))
    return a, centroids


def all_open(a: Tensor) -> OpenWords:
    return sparse(torch.ones_like(a))
