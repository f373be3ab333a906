"""Statistics of the whole batch when several processes hold a part of it each.

A term that is a plain mean over rows needs nothing: DDP averages the gradients. A statistic that
enters a term nonlinearly must be that of the whole batch, or sparsity would change with the number
of processes.

Why the gradient is right under DDP's averaging: with N processes, m = (1/N) Σ_q x_q is the same on
all of them. The backward pass of an all-reduce adds up the gradients of all N losses, so process p
gets dx_p ← Σ_q (1/N) ∂L_q/∂m, which for L_q = f(m) is f'(m). Its parameters get
f'(m) · ∂x_p/∂w, and DDP's mean over p is f'(m) · ∂m/∂w: the gradient of one process with the whole
batch. For a sum, dx_p is N · f'(S), and the mean over p again gives f'(S) · ∂S/∂w.

Every process must come to the same calls in the same order, with tensors that all require a
gradient or all do not; so nothing around these calls may branch on the content of a batch.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


def process_count() -> int:
    if not (dist.is_available() and dist.is_initialized()):
        return 1
    return dist.get_world_size()


def process_rank() -> int:
    return 0 if process_count() == 1 else dist.get_rank()


class _AllReduceSum(torch.autograd.Function):
    """torch.distributed.nn.functional.all_reduce, which warns that it is deprecated."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return _plain_sum(x)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return _plain_sum(grad)


def _plain_sum(x: Tensor) -> Tensor:
    total = x.detach().clone(memory_format=torch.contiguous_format)
    dist.all_reduce(total)
    return total


def sum_over_processes(x: Tensor) -> Tensor:
    """Σ_p x_p, the same on every process; differentiable. With one process: x itself."""
    if process_count() == 1:
        return x
    if x.requires_grad and torch.is_grad_enabled():
        total: Tensor = _AllReduceSum.apply(x)
        return total
    return _plain_sum(x)


def mean_over_processes(x: Tensor) -> Tensor:
    """(1/N) Σ_p x_p, the same on every process; differentiable. With one process: x itself."""
    count = process_count()
    return x if count == 1 else sum_over_processes(x) / count


def rows_of_all_processes(x: Tensor) -> Tensor:
    """[Σ R_p, …]: the rows of every process, in the order of the processes, the same on each;
    differentiable. With one process: x itself."""
    count = process_count()
    if count == 1:
        return x
    sizes = torch.zeros(count, dtype=torch.long, device=x.device)
    sizes[process_rank()] = len(x)
    ends = _plain_sum(sizes).cumsum(0)
    before, total = int(ends[process_rank()]) - len(x), int(ends[-1])
    around = (x.new_zeros(before, *x.shape[1:]), x.new_zeros(total - before - len(x), *x.shape[1:]))
    return sum_over_processes(torch.cat([around[0], x, around[1]]))


def share_of_rows(rows: int, usual: float, device: torch.device) -> float:
    """The weight of a batch of `rows` decisions in a mean over all of them: its number over the
    mean number, of all processes and of the batches that make one step (`usual` on this process).
    """
    here = torch.tensor(float(usual), dtype=torch.float64, device=device)
    return rows / max(1.0, float(mean_over_processes(here)))
