"""Tests that what is cut out cannot matter: bits, not tolerances.

It holds by construction, since a cut word is closed before anything is computed from it. Both tests
would find a construction that does not: random values put into the sparse vector at the cut
coordinates, before the mask, and random weights put into every row of the model that is theirs.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from lexical_sae.model.mode import in_mode
from lexical_sae.model.open_words import OpenWords, one_source_each
from lexical_sae.model.state import CircuitState
from lexical_sae.surgery.suppression import suppressed_coordinates

if TYPE_CHECKING:
    from lexical_sae.model.lexical_sae import LexicalSAE

FILLINGS = 10_000
WEIGHT_FILLINGS = 20
MOST_FILLED = 64  # coordinates that one filling gives a value
CHUNK = 1000


@dataclass(frozen=True)
class NonInterference:
    """How many fillings were tried, and in how many a logit changed in a single bit."""

    fillings: int
    weight_fillings: int
    differing: int


@torch.no_grad()
def check_non_interference(
    model: LexicalSAE,
    state: CircuitState,
    input_ids: Tensor,
    attention_mask: Tensor,
    *,
    seed: int = 0,
) -> NonInterference:
    """`state` holds decisions [N] of the cut model, the inputs [B, L] are some of its texts."""
    cut = torch.tensor(suppressed_coordinates(model))
    if not len(cut):
        raise ValueError("No word is cut out of this model, so there is nothing to test.")
    draw = torch.Generator().manual_seed(seed)
    differing = _fill_values(model, state, cut, draw)
    differing += _fill_weights(model, cut, input_ids, attention_mask, draw)
    return NonInterference(FILLINGS, WEIGHT_FILLINGS, differing)


def _fill_values(model: LexicalSAE, state: CircuitState, cut: Tensor, draw: torch.Generator) -> int:
    """Each filling takes the next decision and gives cut coordinates random values."""
    differing = 0
    for start in range(0, FILLINGS, CHUNK):
        count = min(CHUNK, FILLINGS - start)
        rows = (torch.arange(count) + start) % state.open_words.rows
        plain = _rows(state.open_words, rows)
        filled = _with_values(plain, cut, draw)
        masked = filled.subset(model.lexical.keep[filled.word])  # what stands after the gate
        same = (state.head(masked) == state.head(plain)).all(-1)
        differing += int((~same).sum())
    return differing


def _rows(words: OpenWords, rows: Tensor) -> OpenWords:
    """The open words of these rows, one after the other, rows that come twice too."""
    offsets = words.offsets
    counts = (offsets[1:] - offsets[:-1])[rows]
    row = torch.repeat_interleave(torch.arange(len(rows)), counts)
    first = torch.repeat_interleave(counts.cumsum(0) - counts, counts)
    pair = torch.arange(int(counts.sum())) - first + offsets[rows][row]
    return one_source_each(
        row,
        words.word[pair],
        words.value[pair],
        words.value[pair],
        words.position[pair],
        shape=(len(rows),),
        dictionary_size=words.dictionary_size,
    )


def _with_values(words: OpenWords, cut: Tensor, draw: torch.Generator) -> OpenWords:
    """The same with random values at some of the cut coordinates of every row."""
    many = min(len(cut), MOST_FILLED)
    rows = words.rows
    order = torch.rand(rows, len(cut), generator=draw).argsort(1)[:, :many]  # [rows, many]
    row = torch.cat([words.row, torch.arange(rows).repeat_interleave(many)])
    word = torch.cat([words.word, cut[order].flatten()])
    noise = 10 * torch.randn(rows * many, generator=draw, dtype=words.value.dtype)
    value = torch.cat([words.value, noise])
    by_pair = torch.argsort(row * words.dictionary_size + word, stable=True)
    row, word, value = row[by_pair], word[by_pair], value[by_pair]
    return one_source_each(
        *(row, word, value, value, torch.zeros_like(row)),
        shape=words.shape,
        dictionary_size=words.dictionary_size,
    )


def _fill_weights(
    model: LexicalSAE, cut: Tensor, input_ids: Tensor, attention_mask: Tensor, draw: torch.Generator
) -> int:
    """Random rows in every table of the model that has one per word."""
    other = copy.copy(model)
    parts = {"lexical": copy.deepcopy(model.lexical), "head": copy.deepcopy(model.head)}
    other._modules = {**model._modules, **parts}
    differing = 0
    with in_mode(model, training=False), in_mode(other, training=False):
        plain = _logits(model, input_ids, attention_mask)
        for _ in range(WEIGHT_FILLINGS):
            lexical = other.lexical
            for table in (lexical.weight, lexical.bias, lexical.threshold, other.head.word_table()):
                shape = (len(cut), *table.shape[1:])
                table[cut] = 10 * torch.randn(shape, generator=draw, dtype=table.dtype)
            differing += int(not torch.equal(_logits(other, input_ids, attention_mask), plain))
    return differing


def _logits(model: LexicalSAE, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
    run = model.tag if model.config.task == "tagging" else model.classify
    return run(input_ids, attention_mask).logits
