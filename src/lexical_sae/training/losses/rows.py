"""What all terms share: sums over the open words of a row, and means over the rows that count.

Rows are documents or token positions. Contributions are in units of a logit, so an absolute floor
has a meaning: a row whose contributions come to less than `FLOOR` of a logit explains nothing, and
dividing by less than that would only make its gradient explode.
"""

from __future__ import annotations

import torch
from torch import Tensor

from lexical_sae.attribution.contributions import sum_by_row
from lexical_sae.model.gate import nonnegative_threshold
from lexical_sae.model.open_words import OpenWords
from lexical_sae.training.distributed import mean_over_processes

FLOOR = 1e-4


def safe_norm(squares: Tensor) -> Tensor:
    """√Σ, at least FLOOR, from sums of squares; its gradient is 0 below the floor, never NaN."""
    return squares.clamp(min=FLOOR**2).sqrt()


def row_count(values: Tensor, rows: Tensor | None) -> Tensor:
    """What a sum over this process's rows is divided by: their number, averaged over processes.

    So the mean over processes is exactly the mean over all rows, also where one process has more
    of them than another. Without `rows` all of them count.
    """
    here = values.new_tensor(float(values.shape[0])) if rows is None else rows.sum()
    count = mean_over_processes(here.to(values.dtype))
    return torch.where(count > 0, count, torch.ones_like(count))


def row_mean(values: Tensor, rows: Tensor | None = None) -> Tensor:
    """Mean of values [rows] over the rows where `rows` (bool, any shape) holds; 0 if none does."""
    rows = flat_rows(rows)
    kept = values if rows is None else torch.where(rows, values, torch.zeros_like(values))
    return kept.sum() / row_count(values, rows)


def flat_rows(rows: Tensor | None) -> Tensor | None:
    """`CircuitState.real_rows` is [B, L]; open words count rows flat."""
    return None if rows is None else rows.reshape(-1)


def row_sum(values: Tensor, open_words: OpenWords) -> Tensor:
    """values [P] → [rows]."""
    return sum_by_row(values, open_words.row, open_words.rows)


def share_outside(attribution: Tensor, inside: Tensor, open_words: OpenWords) -> Tensor:
    """[rows]: the share of Σ|A| that comes from pairs where `inside` [P] is false."""
    size = attribution.abs()
    outside = row_sum(torch.where(inside, torch.zeros_like(size), size), open_words)
    return outside / row_sum(size, open_words).clamp(min=FLOOR)


def pair_logit(open_words: OpenWords) -> Tensor:
    """[P]: each pair's lexical logit z; the largest of its sources where it has several."""
    sources = open_words.sources
    if len(sources.pair) == len(open_words):
        return sources.logit
    lowest = sources.logit.new_full((len(open_words),), -torch.inf)
    return lowest.scatter_reduce(0, sources.pair, sources.logit, "amax")


def soft_count(open_words: OpenWords, theta: Tensor, width: Tensor | float) -> Tensor:
    """[rows]: Σ σ((z − θ)/width) over the stored pairs, a smooth number of open words.

    Takes the raw θ [V] or the clamped one. Pairs just below their threshold, which the jump gate
    keeps in training, count too: the sum is smooth across the threshold only because of them.
    """
    distance = pair_logit(open_words) - nonnegative_threshold(theta)[open_words.word]  # [P]
    return row_sum(torch.sigmoid(distance / width), open_words)
