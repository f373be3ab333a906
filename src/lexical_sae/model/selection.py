"""Which (row, word) pairs can be open: the one dense product, in blocks that fit in cache.

Selection has no gradient. The product only finds candidates; logits that are computed again pair
by pair decide, so the result depends neither on the block sizes nor on the product's precision.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from lexical_sae.model.open_words import largest_first, row_offsets
from lexical_sae.model.ordering import ascending
from lexical_sae.model.pair_logits import pair_logits
from lexical_sae.model.screen import LowTable, at_least, make_screen

# Measured on two cores (docs/performance.md); on an accelerator larger blocks feed it better.
CPU_BLOCK = (512, 512)
LOW_PRECISION_BLOCK = (512, 1024)  # as many bytes
ACCELERATOR_BLOCK = (8192, 4096)


@dataclass(frozen=True, eq=False)
class WordPositions:
    """The real word positions of a padded batch, packed: padding and special tokens are gone."""

    document: Tensor  # [N] ascending
    position: Tensor  # [N] token position in the padded sequence
    batch: int
    length: int

    @property
    def flat(self) -> Tensor:
        """[N] index into the flattened [B · L] batch."""
        return self.document * self.length + self.position


def word_positions(mask: Tensor) -> WordPositions:
    """mask [B, L], true where a word of the input stands."""
    document, position = mask.nonzero(as_tuple=True)
    return WordPositions(document, position, mask.shape[0], mask.shape[1])


def block_sizes(rows: Tensor) -> tuple[int, int]:
    """Rows and words of a block of products with `rows`."""
    if rows.device.type != "cpu":
        return ACCELERATOR_BLOCK
    return LOW_PRECISION_BLOCK if rows.dtype == torch.bfloat16 else CPU_BLOCK


def pooled_logits(
    h: Tensor,
    E: Tensor,
    document: Tensor,
    documents: int,
    block: tuple[int, int] | None = None,
) -> Tensor:
    """Max over each document's positions of h·E: [documents, V]; −inf for an empty one.

    h [N, H] packed, document [N] ascending. Holds one block of logits, never [N, V].
    """
    row_block, word_block = block or block_sizes(h)
    pooled = h.new_full((documents, E.shape[0]), -torch.inf)
    for start in range(0, h.shape[0], row_block):
        rows = h[start : start + row_block]
        ids, lengths = torch.unique_consecutive(
            document[start : start + row_block], return_counts=True
        )
        segments = list(zip(ids.tolist(), lengths.tolist(), strict=True))
        for left in range(0, E.shape[0], word_block):
            z = rows @ E[left : left + word_block].T  # [row_block, word_block]
            top = 0
            for doc, length in segments:
                target = pooled[doc, left : left + word_block]
                torch.maximum(target, z[top : top + length].amax(0), out=target)
                top += length
    return pooled


@torch.no_grad()
def select_documents(
    h: Tensor,
    E: Tensor,
    b: Tensor,
    bound: Tensor,
    where: WordPositions,
    block: tuple[int, int] | None = None,
    low: LowTable | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """(document [P], word [P], index into the packed rows [P]) with max over positions > bound.

    bound [V]. The position is the first one at which the maximum is reached.
    """
    screen = make_screen(h, E, b, low)
    pooled = pooled_logits(screen.rows, screen.table, where.document, where.batch, block)
    document, word = at_least(pooled, screen.floor(bound, b))
    slack = screen.rounding
    del pooled, screen
    pair, packed = _near_maxima(h, E, slack, where, document, word)
    z = pair_logits(h, E, b, packed, word[pair])
    best = largest_first(pair, z)[row_offsets(pair, len(word))[:-1]]
    above = z[best] > bound[word]
    return document[above], word[above], packed[best][above]


def _near_maxima(
    h: Tensor, E: Tensor, slack: Tensor, where: WordPositions, document: Tensor, word: Tensor
) -> tuple[Tensor, Tensor]:
    """(pair [Q] ascending, packed row [Q]): the positions at which each pair's maximum can be,
    given rounding; nearly always one each."""
    row_count = torch.bincount(where.document, minlength=where.batch).tolist()
    pair_count = torch.bincount(document, minlength=where.batch).tolist()
    pairs = [document[:0]]
    rows = [document[:0]]
    row = start = 0
    for n_rows, n_pairs in zip(row_count, pair_count, strict=True):
        if n_pairs:
            words = word[start : start + n_pairs]
            z = E[words] @ h[row : row + n_rows].T  # [n_pairs, n_rows]; b moves no maximum
            # each of two positions may be off by the slack
            near = z >= z.amax(1, keepdim=True) - 2 * slack[words, None]
            pair, position = near.nonzero(as_tuple=True)
            pairs.append(pair + start)
            rows.append(position + row)
        row, start = row + n_rows, start + n_pairs
    return torch.cat(pairs), torch.cat(rows)


@torch.no_grad()
def select_positions(
    h: Tensor,
    E: Tensor,
    b: Tensor,
    bound: Tensor,
    block: tuple[int, int] | None = None,
    low: LowTable | None = None,
) -> tuple[Tensor, Tensor]:
    """(packed row [P], word [P]) sorted by row, then word: all with h·E + b > bound, and some that
    come so near to it that only their own logits can tell."""
    screen = make_screen(h, E, b, low)
    row_block, word_block = block or block_sizes(screen.rows)
    floor = screen.floor(bound, b)  # of the bare product: b never has to be added
    bits = E.shape[0].bit_length()  # of a key that are the word's
    found_rows: list[Tensor] = []
    found_words: list[Tensor] = []
    for start in range(0, h.shape[0], row_block):
        rows = screen.rows[start : start + row_block]
        keys = []
        for left in range(0, E.shape[0], word_block):
            z = rows @ screen.table[left : left + word_block].T
            row, word = at_least(z, floor[left : left + word_block])
            keys.append((row << bits) + (word + left))
        key = ascending(torch.cat(keys))
        found_rows.append((key >> bits) + start)
        found_words.append(key & (2**bits - 1))
    if not found_rows:
        none = torch.empty(0, dtype=torch.long, device=h.device)
        return none, none
    return torch.cat(found_rows), torch.cat(found_words)
