"""Gradient centralisation (Yong et al. 2020): every row of a gradient gets mean zero."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn


@torch.no_grad()
def centralise_gradients(parameters: Iterable[nn.Parameter]) -> None:
    """Subtract from each gradient of two or more dimensions its mean over all but the first, in
    place; gradients of one dimension, and missing ones, are left alone.

    The mean is that of a row, never of a column. For a linear map a row is what feeds one output.
    For an embedding and for the dictionary's rows [V, H] a row is one word: a word that the batch
    did not touch has a zero gradient and keeps it, where a mean over words would move them all.

    The caller leaves out the head: its rows are short, and the mean of a word's effect on the
    classes is something that it must be able to learn.
    """
    for p in parameters:
        if p.grad is not None and p.grad.dim() >= 2:
            p.grad.sub_(p.grad.mean(dim=tuple(range(1, p.grad.dim())), keepdim=True))
