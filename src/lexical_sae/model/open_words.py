"""Open words: the sparse matrix between the gate and the head, as index/value pairs.

A row is a document or a token position, a column is a dictionary word. Only pairs whose
gate is open are stored, so nothing here is ever as wide as the vocabulary.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from lexical_sae.model.ordering import grouped


@dataclass(frozen=True, eq=False)
class Sources:
    """Where in the input each pair's value comes from; the shares of a pair add up to its value."""

    pair: Tensor  # [Q] index into the pairs, ascending
    position: Tensor  # [Q] token position in the padded sequence
    value: Tensor  # [Q] share of the pair's value
    logit: Tensor  # [Q] lexical logit z at that position, before the gate


@dataclass(frozen=True, eq=False)
class Routes:
    """The positions at which an expanded word is open, and how the choice of its sense stood."""

    word: Tensor  # [Q] place among the expanded words, 0 … K − 1
    soft: Tensor  # [Q, M] softmax of the routing scores; with a gradient in training


@dataclass(frozen=True, eq=False)
class OpenWords:
    """A ragged sparse matrix, sorted by row, then by word.

    In training, pairs inside the gate's straight-through window are kept with value 0, so
    that their thresholds get a gradient; otherwise every value is above 0.
    """

    row: Tensor  # [P] flat index into `shape`
    word: Tensor  # [P] dictionary coordinate
    value: Tensor  # [P] activation s
    sources: Sources
    shape: tuple[int, ...]  # (B,) for documents, (B, L) for token positions
    dictionary_size: int
    routes: Routes | None = None  # of words with senses, over all positions of the batch

    def __len__(self) -> int:
        return int(self.row.numel())

    @property
    def rows(self) -> int:
        return math.prod(self.shape)

    @property
    def offsets(self) -> Tensor:
        """[rows + 1]: the pairs of row r are offsets[r] : offsets[r + 1]."""
        return row_offsets(self.row, self.rows)

    @property
    def position(self) -> Tensor:
        """[P]: the position that gives most of each pair's value (the argmax for max pooling)."""
        if len(self.sources.pair) == len(self):
            return self.sources.position
        order = largest_first(self.sources.pair, self.sources.value)
        return self.sources.position[order[row_offsets(self.sources.pair, len(self))[:-1]]]

    def counts(self) -> Tensor:
        """Number of open words per row, of shape `shape`."""
        counts = torch.zeros(self.rows, dtype=torch.long, device=self.row.device)
        counts.index_add_(0, self.row, (self.value > 0).long())
        return counts.view(self.shape)

    def squared_lengths(self) -> Tensor:
        """[rows]: Σ value²."""
        return self.value.new_zeros(self.rows).index_add(0, self.row, self.value.square())

    def to_dense(self) -> Tensor:
        """[*shape, V]; for inspection and tests, not for large batches."""
        dense = self.value.new_zeros(self.rows, self.dictionary_size)
        dense = dense.index_put((self.row, self.word), self.value)
        return dense.view(*self.shape, self.dictionary_size)

    def scaled(self, factor: Tensor) -> OpenWords:
        """Each value times `factor` [P], for instance a circuit mask; the shares follow."""
        sources = replace(self.sources, value=self.sources.value * factor[self.sources.pair])
        return replace(self, value=self.value * factor, sources=sources)

    def subset(self, keep: Tensor) -> OpenWords:
        """Only the pairs where the boolean `keep` [P] holds."""
        new_index = torch.cumsum(keep.long(), 0) - 1  # [P]
        kept = keep[self.sources.pair]
        return replace(
            self,
            row=self.row[keep],
            word=self.word[keep],
            value=self.value[keep],
            sources=Sources(
                pair=new_index[self.sources.pair[kept]],
                position=self.sources.position[kept],
                value=self.sources.value[kept],
                logit=self.sources.logit[kept],
            ),
        )

    def at_rows(self, where: Tensor) -> OpenWords:
        """Only the rows where the boolean `where` (of shape `shape`) holds, as shape (R,)."""
        flat = where.reshape(-1)
        kept = self.subset(flat[self.row])
        new_row = torch.cumsum(flat.long(), 0) - 1  # [rows]
        return replace(kept, row=new_row[kept.row], shape=(int(flat.sum()),))


def dropped(open_words: OpenWords, share: float, training: bool) -> OpenWords:
    """In training a random share of the pairs at 0, the others larger by as much (dropout)."""
    if not training or share == 0.0:
        return open_words
    return open_words.scaled(F.dropout(torch.ones_like(open_words.value), share))


def largest_first(group: Tensor, value: Tensor) -> Tensor:
    """[P]: the order by group, then by falling value, then by index."""
    by_value = torch.argsort(value, descending=True, stable=True)
    return by_value[torch.argsort(group[by_value], stable=True)]


def rank_in_row(row: Tensor, value: Tensor, rows: int) -> Tensor:
    """[P]: how many pairs of the same row are larger, for ascending rows; ties by index."""
    by_value = torch.argsort(value, descending=True, stable=True)
    within, start = grouped(row[by_value], rows)  # as `largest_first`, the rows being few
    rank = torch.empty_like(by_value)
    rank[by_value[within]] = torch.arange(len(row), device=row.device) - start[row]
    return rank


def row_offsets(sorted_rows: Tensor, rows: int) -> Tensor:
    """[rows + 1] start of each row in an ascending index [P]; empty rows have no length."""
    boundaries = torch.arange(rows + 1, device=sorted_rows.device)
    return torch.searchsorted(sorted_rows, boundaries)


def one_source_each(
    row: Tensor,
    word: Tensor,
    value: Tensor,
    logit: Tensor,
    position: Tensor,
    *,
    shape: tuple[int, ...],
    dictionary_size: int,
    routes: Routes | None = None,
) -> OpenWords:
    """Open words whose whole value comes from one position: max pooling and token positions."""
    pair = torch.arange(row.numel(), device=row.device)
    sources = Sources(pair=pair, position=position, value=value, logit=logit)
    return OpenWords(row, word, value, sources, shape, dictionary_size, routes)
