"""Sums over the open words of each row, with a backward pass that touches only their pairs."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from lexical_sae.model.open_words import OpenWords
from lexical_sae.model.ordering import grouped
from lexical_sae.model.pair_logits import sampled_products, weighted_row_sums


def gathered_sums(open_words: OpenWords, table: Tensor) -> Tensor:
    """The plain form of `sum_open_words`, by torch's own gradients."""
    return F.embedding_bag(
        open_words.word,
        table,
        open_words.offsets[:-1],
        mode="sum",
        per_sample_weights=open_words.value,
    )


class _WordSums(torch.autograd.Function):
    """As the above; torch's own backward pass takes twice as long."""

    @staticmethod
    def forward(
        ctx: Any, table: Tensor, value: Tensor, row: Tensor, word: Tensor, offsets: Tensor
    ) -> Tensor:
        ctx.save_for_backward(table, value, row, word)
        return weighted_row_sums(table, word, value, offsets)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        table, value, row, word = ctx.saved_tensors
        grad_table = grad_value = None
        if ctx.needs_input_grad[0]:
            by_word, offsets = grouped(word, table.shape[0])
            grad_table = weighted_row_sums(grad, row[by_word], value[by_word], offsets)
        if ctx.needs_input_grad[1]:
            grad_value = sampled_products(grad, table, row, word)
        return grad_table, grad_value, None, None, None


def sum_open_words(open_words: OpenWords, table: Tensor) -> Tensor:
    """[rows, D] = Σ over each row's open words of value · table[word]; table [V, D]."""
    if len(open_words) == 0:
        # keeps the result attached to the graph, so that a batch without open words trains
        return table.new_zeros(open_words.rows, table.shape[1]) + 0.0 * table[:1].sum()
    sums: Tensor = _WordSums.apply(
        table, open_words.value, open_words.row, open_words.word, open_words.offsets
    )
    return sums
