"""Lexical logits at chosen (position, word) pairs, with a backward pass that touches only those.

z[p] = h[position p] · E[word p] + b[word p]. Every other entry of the [positions, V] matrix has
no gradient once the gate is closed, so it is never stored.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from lexical_sae.model.open_words import row_offsets
from lexical_sae.model.ordering import grouped

# torch warns once in every process that CSR tensors are in beta; the sampled product below is all
# that is used of them, so the warning is spent here.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    torch.sparse_csr_tensor([0, 0], [], [], size=(1, 1))

_GATHER_CHUNK = 8192  # pairs per step of the gathered product: 2 · 8192 · H floats


def gathered_products(h: Tensor, E: Tensor, position: Tensor, word: Tensor) -> Tensor:
    """The obvious form: gather both rows and multiply, in chunks."""
    z = h.new_empty(position.numel())
    for start in range(0, position.numel(), _GATHER_CHUNK):
        part = slice(start, start + _GATHER_CHUNK)
        z[part] = (h[position[part]] * E[word[part]]).sum(-1)
    return z


def sampled_products(h: Tensor, E: Tensor, position: Tensor, word: Tensor) -> Tensor:
    """The same through torch's sampled product, which gathers nothing; position must ascend.

    Each entry is one dot product of its own, so its bits do not depend on what else is asked.
    """
    if h.device.type != "cpu" or position.numel() == 0:
        return gathered_products(h, E, position, word)
    pattern = torch.sparse_csr_tensor(
        row_offsets(position, h.shape[0]),
        word,
        h.new_zeros(position.numel()),
        size=(h.shape[0], E.shape[0]),
        check_invariants=False,
    )
    z: Tensor = torch.sparse.sampled_addmm(pattern, h, E.T, beta=0.0).values()
    return z


def weighted_row_sums(table: Tensor, index: Tensor, weight: Tensor, offsets: Tensor) -> Tensor:
    """out[r] = Σ over the pairs of r of weight · table[index]; nothing of size [P, H] is made."""
    return F.embedding_bag(index, table, offsets[:-1], mode="sum", per_sample_weights=weight)


class _PairLogits(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, h: Tensor, E: Tensor, b: Tensor | None, position: Tensor, word: Tensor
    ) -> Tensor:
        ctx.save_for_backward(h, E, position, word)
        z = sampled_products(h, E, position, word)
        return z if b is None else z + b[word]

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        h, E, position, word = ctx.saved_tensors
        grad_h = grad_E = grad_b = None
        if ctx.needs_input_grad[0]:
            grad_h = weighted_row_sums(E, word, grad, row_offsets(position, h.shape[0]))
        if ctx.needs_input_grad[1]:
            by_word, offsets = grouped(word, E.shape[0])  # words without a pair get 0
            grad_E = weighted_row_sums(h, position[by_word], grad[by_word], offsets)
        if ctx.needs_input_grad[2]:
            grad_b = grad.new_zeros(E.shape[0]).index_add_(0, word, grad)
        return grad_h, grad_E, grad_b, None, None


def pair_logits(h: Tensor, E: Tensor, b: Tensor | None, position: Tensor, word: Tensor) -> Tensor:
    """h [N, H], E [V, H], b [V] or none, position [P], word [P] → z [P], in the pairs' order."""
    if position.numel() and bool((position[1:] < position[:-1]).any()):
        order = torch.argsort(position, stable=True)
        z: Tensor = _PairLogits.apply(h, E, b, position[order], word[order])
        return z[torch.argsort(order)]
    z = _PairLogits.apply(h, E, b, position, word)
    return z
