"""Separation: the circuits of different classes use different words.

Both forms compare the live batch, which has a gradient, with running centroids, which have none:
centroids against centroids alone would train nothing.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from lexical_sae.model.open_words import OpenWords
from lexical_sae.model.word_sums import sum_open_words
from lexical_sae.training.distributed import mean_over_processes
from lexical_sae.training.losses.centroids import ClassCentroids, class_means, explained_rows
from lexical_sae.training.losses.margin import LearnedMargin
from lexical_sae.training.losses.rows import row_mean, row_sum, safe_norm


def separation_contrastive(
    attribution: Tensor,
    open_words: OpenWords,
    row_class: Tensor,
    centroids: ClassCentroids,
    margin: float | Tensor | LearnedMargin,
    rows: Tensor | None = None,
) -> Tensor:
    """Mean of relu(max_{c≠y} cos(|A|, centroid_c) − cos(|A|, centroid_y) + margin), y = row_class.

    Over rows that have a contribution, whose own class and at least one other were seen; 0 if
    there is none.
    """
    gap, counted = class_gap(attribution, open_words, row_class, centroids, rows)
    if not isinstance(margin, LearnedMargin):
        return row_mean(torch.relu(gap + margin), counted)
    distance = margin()
    violated = (gap + distance > 0).to(gap.dtype).detach()  # [rows]
    rate = mean_over_processes(row_mean(violated, counted))
    any_row = mean_over_processes(counted.any().to(gap.dtype)) > 0
    hinge = row_mean(torch.relu(gap + distance.detach()), counted)
    return hinge + margin.move(rate, any_row)


def class_gap(
    attribution: Tensor,
    open_words: OpenWords,
    row_class: Tensor,
    centroids: ClassCentroids,
    rows: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """[rows]: how much nearer the nearest other class is than the own one; and which rows count."""
    own = row_class.reshape(-1)
    cosine = cosine_to_centroids(attribution, open_words, centroids.mean)  # [rows, C]
    classes = torch.arange(cosine.shape[1], device=own.device)
    rival = centroids.seen[None, :] & (classes[None, :] != own[:, None])  # [rows, C]
    # cosines of sizes are never below 0, so −1 stands for "no rival" without an infinity
    nearest = cosine.masked_fill(~rival, -1.0).amax(-1)  # [rows]
    gap = nearest - cosine.gather(1, own[:, None])[:, 0]
    counted = explained_rows(attribution, open_words, rows)
    return gap, counted & centroids.seen[own] & rival.any(-1)


def cosine_to_centroids(attribution: Tensor, open_words: OpenWords, mean: Tensor) -> Tensor:
    """[rows, C]: cos(|A| of each row, each class's centroid); 0 for rows without contributions."""
    size = attribution.abs()  # [P]
    direction = _unit(mean.to(size.dtype)).T.contiguous()  # [V, C]
    along = sum_open_words(replace(open_words, value=size), direction)  # [rows, C]
    return along / safe_norm(row_sum(size.square(), open_words))[:, None]


def separation_cosine(
    attribution: Tensor,
    open_words: OpenWords,
    row_class: Tensor,
    centroids: ClassCentroids,
    rows: Tensor | None = None,
) -> Tensor:
    """Mean of cos(live mean |A| of class c, running centroid of class d) over pairs c ≠ d.

    c: the classes in the batch (of all processes), d: all others; both seen before. 0 if there is
    no such pair.
    """
    seen = centroids.seen
    live, present = class_means(attribution, open_words, row_class, len(seen), rows)  # [C, V]
    cosine = _unit(live) @ _unit(centroids.mean.to(live.dtype)).T  # [C live, C running]
    pair = (present & seen)[:, None] & seen[None, :]
    pair = pair & ~torch.eye(len(seen), dtype=torch.bool, device=seen.device)
    return torch.where(pair, cosine, torch.zeros_like(cosine)).sum() / pair.sum().clamp(min=1)


def _unit(vectors: Tensor) -> Tensor:
    """Rows of [C, V] at length 1; rows near 0 stay near 0."""
    return vectors / safe_norm(vectors.square().sum(-1, keepdim=True))
