"""Class centroids: which words each class uses, as a running mean of |A|."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lexical_sae.attribution.contributions import sum_by_row
from lexical_sae.model.open_words import OpenWords
from lexical_sae.training.distributed import sum_over_processes
from lexical_sae.training.losses.rows import flat_rows, row_sum


def class_means(
    attribution: Tensor,
    open_words: OpenWords,
    row_class: Tensor,
    classes: int,
    rows: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Mean |A| of each class [C, V], over the rows of all processes, and which have one [C].

    Rows without any contribution say nothing about which words a class uses, and do not count.
    Differentiable.
    """
    counted = explained_rows(attribution, open_words, rows)
    row_class = row_class.reshape(-1)
    size = torch.where(counted[open_words.row], attribution.abs(), torch.zeros_like(attribution))
    cell = row_class[open_words.row] * open_words.dictionary_size + open_words.word  # [P]
    total = sum_by_row(size, cell, classes * open_words.dictionary_size)  # [C · V]
    number = sum_by_row(counted.to(size.dtype), row_class, classes)  # [C]
    total, number = sum_over_processes(total), sum_over_processes(number)
    mean = total.view(classes, -1) / number.clamp(min=1)[:, None]
    return mean, number > 0


def explained_rows(attribution: Tensor, open_words: OpenWords, rows: Tensor | None) -> Tensor:
    """[rows] bool: the rows that count and have a contribution at all."""
    some = row_sum(attribution.detach().abs(), open_words) > 0
    counted = flat_rows(rows)
    return some if counted is None else some & counted


class ClassCentroids(nn.Module):
    """mean ← decay · mean + (1 − decay) · batch mean, for the classes in the batch; a class's first
    batch is copied, so that no centroid is ever half zeros."""

    mean: Tensor
    seen: Tensor

    def __init__(self, classes: int, dictionary_size: int, decay: float = 1 - 2 / 21) -> None:
        super().__init__()
        self.decay = decay
        self.register_buffer("mean", torch.zeros(classes, dictionary_size))  # [C, V]
        self.register_buffer("seen", torch.zeros(classes, dtype=torch.bool))  # [C]

    @torch.no_grad()
    def update(
        self,
        attribution: Tensor,
        open_words: OpenWords,
        row_class: Tensor,
        rows: Tensor | None = None,
    ) -> None:
        """Call after the separation term, else each row is compared with itself too."""
        live, present = class_means(attribution, open_words, row_class, len(self.seen), rows)
        live = live.to(self.mean.dtype)
        keep = self.seen[:, None].to(live.dtype) * self.decay  # [C, 1]
        moved = keep * self.mean + (1 - keep) * live
        self.mean.copy_(torch.where(present[:, None], moved, self.mean))
        self.seen.logical_or_(present)
