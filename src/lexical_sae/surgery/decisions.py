"""Decisions as words are cut one after the other, fast enough for a search that tries thousands."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from lexical_sae.model.heads import sum_open_words
from lexical_sae.model.state import CircuitState


@dataclass(frozen=True, eq=False)
class Changed:
    """What one more cut changes: the rows [R] that open the word, and their logits [R, C] then."""

    rows: Tensor
    logits: Tensor


class Decisions:
    """Logits of N rows without the words that are gone.

    The head reads one sum per row, so a word leaves by subtraction: only its own rows are touched,
    and their other words are not summed again. `after_removal` is the plain form of the same.
    """

    @torch.no_grad()
    def __init__(self, state: CircuitState) -> None:
        words = state.open_words
        self._head = state.head
        self._table = state.head.word_table().detach()  # [V, D]
        # subtracting many words of a row in fp32 would leave their rounding behind
        self._total = sum_open_words(words, self._table).double()  # [N, D]
        self._square = words.squared_lengths().double()  # [N]
        self.logits = state.logits.detach().clone()  # [N, C]
        self.gone: list[int] = []
        order = torch.argsort(words.word, stable=True)
        self._rows, self._values = words.row[order], words.value.detach()[order]
        edges = torch.arange(words.dictionary_size + 1)
        self._start = torch.searchsorted(words.word[order].contiguous(), edges)

    @torch.no_grad()
    def try_cut(self, v: int) -> Changed:
        """What would change if the word went too; nothing is changed yet."""
        place = slice(int(self._start[v]), int(self._start[v + 1]))
        rows, value = self._rows[place], self._values[place].double()
        total = self._total[rows] - value[:, None] * self._table[v]
        length = (self._square[rows] - value.square()).clamp(min=0).sqrt()
        kind = self._table.dtype
        return Changed(rows, self._head.finish(total.to(kind), length.to(kind)))

    @torch.no_grad()
    def cut(self, v: int) -> None:
        changed = self.try_cut(v)
        place = slice(int(self._start[v]), int(self._start[v + 1]))
        value = self._values[place].double()
        self._total[changed.rows] -= value[:, None] * self._table[v]
        self._square[changed.rows] -= value.square()
        self.logits[changed.rows] = changed.logits
        self.gone.append(v)
