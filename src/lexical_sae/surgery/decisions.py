"""Decisions as words are cut one after the other, fast enough for a search that tries thousands."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from lexical_sae.model.state import CircuitState


@dataclass(frozen=True, eq=False)
class Changed:
    """What one more cut changes: the rows [R] that open the word, and their logits [R, C] then."""

    rows: Tensor
    logits: Tensor


@dataclass(frozen=True, eq=False)
class _Left:
    """What is left of rows [R] once a word is gone."""

    total: Tensor  # [R, D] Σ value · table
    square: Tensor  # [R] Σ value²
    words: Tensor  # [R] how many


class Decisions:
    """What is left of N rows without the words that are gone, and the logits that it gives.

    The head reads one sum per row, so a word leaves by subtraction: only its own rows are touched,
    and their other words are not summed again. `after_removal` is the plain form of the same. Sums
    are in fp64, and exactly 0 where no word is left, or their rounding would decide there.
    """

    @torch.no_grad()
    def __init__(self, state: CircuitState) -> None:
        words = state.open_words
        self._head = state.head
        self._kind = state.logits.dtype
        self._table = state.head.word_table().detach().double()  # [V, D]
        value = words.value.detach().double()
        self._total = self._table.new_zeros(words.rows, self._table.shape[1])  # [N, D]
        if len(words):
            ends = words.offsets[:-1]
            self._total = F.embedding_bag(
                words.word, self._table, ends, mode="sum", per_sample_weights=value
            )
        self._square = value.new_zeros(words.rows).index_add(0, words.row, value.square())
        self._words = torch.bincount(words.row, minlength=words.rows)
        order = torch.argsort(words.word, stable=True)
        self._rows, self._values = words.row[order], value[order]
        edges = torch.arange(words.dictionary_size + 1)
        self._start = torch.searchsorted(words.word[order].contiguous(), edges)

    def try_cut(self, v: int) -> Changed:
        """What would change if the word went too; nothing is changed yet."""
        rows, left = self._without(v)
        return Changed(rows, self._logits(left))

    def cut(self, v: int) -> Changed:
        rows, left = self._without(v)
        self._total[rows] = left.total
        self._square[rows] = left.square
        self._words[rows] = left.words
        return Changed(rows, self._logits(left))

    @torch.no_grad()
    def _without(self, v: int) -> tuple[Tensor, _Left]:
        place = slice(int(self._start[v]), int(self._start[v + 1]))
        rows, value = self._rows[place], self._values[place]
        some = (self._words[rows] > 1).double()
        total = (self._total[rows] - value[:, None] * self._table[v]) * some[:, None]
        square = (self._square[rows] - value.square()).clamp(min=0) * some
        return rows, _Left(total, square, self._words[rows] - 1)

    @torch.no_grad()
    def _logits(self, left: _Left) -> Tensor:
        return self._head.finish(left.total.to(self._kind), left.square.sqrt().to(self._kind))
