"""A cheap product that finds which pairs can be open, with a bound on how far it can be off.

What it lets through is computed again, pair by pair, in full precision, and that decides; so the
screen's precision changes the time and never the result. Where the processor multiplies bfloat16
natively a screen in it takes half the time.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import torch
from torch import Tensor

# Below this many rows, making the low copy of the dictionary takes what it would spare.
FEWEST_ROWS = 128
_BLOCK = 512  # words
# the sign bits of all numbers in 64 bits, and integers of the numbers' size
_SIGNS = {
    torch.float32: (0x8000_0000_8000_0000 - 2**64, torch.int32),
    torch.bfloat16: (0x8000_8000_8000_8000 - 2**64, torch.int16),
}


@dataclass(frozen=True, eq=False)
class Screen:
    """Operands of the product, and how far a product can be from the pair's own logit less b."""

    rows: Tensor  # [N, H]
    table: Tensor  # [V, H]
    slack: Tensor  # [V]
    rounding: Tensor  # [V] the part of it that products in full precision have too

    def floor(self, bound: Tensor, b: Tensor) -> Tensor:
        """[V], in the precision of the product: a product below it is of a logit not above `bound`.

        Rounding keeps the order, so what is at least x, rounded, is at least x rounded.
        """
        return (bound - b - self.slack).to(self.rows.dtype)


@functools.cache
def low_precision_is_fast() -> bool:
    supported = getattr(torch.cpu, "_is_avx512_bf16_supported", None)
    return bool(supported is not None and supported())


def _rounding(h: Tensor, lengths: Tensor, b: Tensor) -> Tensor:
    """[V]: how far two ways of computing h·E[v] + b[v] can differ, for any row of h; lengths |E|.

    Each product is within H·(eps/2)·|h|·|E[v]| of the true one, and adding b and comparing round a
    few times more.
    """
    relative = (h.shape[1] + 8) * torch.finfo(h.dtype).eps
    slack: Tensor = relative * (_longest(h) * lengths + b.abs())
    return slack


@dataclass(frozen=True, eq=False)
class LowTable:
    """The dictionary in bfloat16, and what that leaves out of each word."""

    table: Tensor  # [V, H]
    lengths: Tensor  # [V] |E|
    lost: Tensor  # [V] |δE|


def low_table(E: Tensor) -> LowTable:
    """E [V, H], in blocks that fit in cache."""
    table = torch.empty_like(E, dtype=torch.bfloat16)
    lost = E.new_empty(len(E))
    for part in range(0, len(E), _BLOCK):
        words = slice(part, part + _BLOCK)
        table[words] = E[words]
        lost[words] = _lengths(E[words] - table[words])
    return LowTable(table, _lengths(E), lost)


def screens_low(E: Tensor) -> bool:
    """Whether products with this dictionary are screened in bfloat16."""
    return E.device.type == "cpu" and E.dtype == torch.float32 and low_precision_is_fast()


def make_screen(h: Tensor, E: Tensor, b: Tensor, low: LowTable | None = None) -> Screen:
    """h [N, H], E [V, H], b [V]; `low` is that of E, where it is known already."""
    if not screens_low(E) or h.dtype != E.dtype or (low is None and h.shape[0] < FEWEST_ROWS):
        slack = _rounding(h, _lengths(E), b)
        return Screen(h, E, slack, slack)
    low = low_table(E) if low is None else low
    slack = _rounding(h, low.lengths, b)
    rows = h.bfloat16()
    longest, moved = _longest(h), _longest(h - rows)
    # What rounding both operands adds, since (h + δh)·(E + δE) − h·E = δh·(E + δE) + h·δE. Their
    # products are exact in single precision, in which they are summed.
    extra = moved * (low.lengths + low.lost) + longest * low.lost
    return Screen(rows, low.table, slack + (1 + 1e-5) * extra, slack)


def at_least(z: Tensor, floor: Tensor) -> tuple[Tensor, Tensor]:
    """(row [P], word [P]), in that order, where z [N, W] is not below floor [W]; z is used up.

    Nearly everything is below, so several numbers are looked at as one integer: a comparison into
    booleans and a search through them take three times as long.
    """
    words, together = z.shape[1], 8 // z.element_size()
    if z.dtype not in _SIGNS or words % together or not z.is_contiguous():
        return (z >= floor).nonzero(as_tuple=True)  # type: ignore[return-value]
    signs, integer = _SIGNS[z.dtype]
    # Of a difference only the sign is asked, which no rounding changes; equals give +0, and so does
    # -0 once no floor is +0.
    passing = (
        z.sub_(floor.masked_fill(floor == 0, -0.0))
        .view(torch.int64)
        .bitwise_and_(signs)
        .bitwise_xor_(signs)
        .view(-1)
    )
    some = passing.nonzero()[:, 0]
    which, place = passing[some].view(integer).view(-1, together).nonzero(as_tuple=True)
    flat = some[which] * together + place
    row = torch.div(flat, words, rounding_mode="floor")
    return row, flat - row * words


def _lengths(rows: Tensor) -> Tensor:
    lengths: Tensor = torch.linalg.vector_norm(rows, dim=1)
    return lengths


def _longest(rows: Tensor) -> Tensor:
    return _lengths(rows).max() if rows.shape[0] else rows.new_zeros(())
