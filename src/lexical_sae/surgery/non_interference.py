"""Tests that what is cut out cannot matter: bits, not tolerances.

It holds by construction, since a cut word is closed before anything is computed from it. The test
would find a construction that does not: every row of the model that belongs to a cut word (its
direction, bias, threshold and what the head does with it) is drawn at random, so that its value
before the mask is another one in every text, and mostly a large one; gate and head are then run as
they are, and each text's logits must be the same bits. One text under one draw is one filling.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from lexical_sae.evaluation.reading import BATCH
from lexical_sae.model.bcos import BcosHead
from lexical_sae.model.mode import in_mode
from lexical_sae.surgery.suppression import suppressed_coordinates

if TYPE_CHECKING:
    from lexical_sae.model.lexical_sae import LexicalSAE

FILLINGS = 10_000
MOST_TEXTS = 500  # that are filled; fewer texts are filled more often each


@dataclass(frozen=True)
class NonInterference:
    """How many fillings were tried, and in how many a logit changed in a single bit."""

    fillings: int
    differing: int


@torch.no_grad()
def check_non_interference(
    model: LexicalSAE,
    texts: Sequence[str],
    *,
    seed: int = 0,
    advance: Callable[[int], None] = lambda rows: None,
) -> NonInterference:
    """At least FILLINGS of them, over some of the texts."""
    cut = torch.tensor(suppressed_coordinates(model))
    if not len(cut):
        raise ValueError("No word is cut out of this model, so there is nothing to test.")
    some = [texts[i * len(texts) // MOST_TEXTS] for i in range(MOST_TEXTS)]
    some = list(texts) if len(texts) <= MOST_TEXTS else some
    draws = -(-FILLINGS // len(some))
    draw = torch.Generator().manual_seed(seed)
    other = copy.copy(model)
    parts = {"lexical": copy.deepcopy(model.lexical), "head": copy.deepcopy(model.head)}
    other._modules = {**model._modules, **parts}
    differing = 0
    with in_mode(model, training=False), in_mode(other, training=False):
        for h, mask in _states(model, some):
            plain = _logits(model, h, mask)
            for _ in range(draws):
                _draw_rows(other, cut, draw)
                same = (_logits(other, h, mask) == plain).flatten(1).all(1)
                differing += int((~same).sum())
            advance(len(h))
    return NonInterference(draws * len(some), differing)


def _states(model: LexicalSAE, texts: Sequence[str]) -> Iterator[tuple[Tensor, Tensor]]:
    """Hidden states [B, L, H] and where words may open [B, L]: the backbone runs once."""
    by_length = sorted(texts, key=len)
    for start in range(0, len(by_length), BATCH):
        part = by_length[start : start + BATCH]
        inputs = model.encode(part, model.config.max_tokens).model_inputs()
        tagging = model.config.task == "tagging"
        mask = model.word_mask(**inputs) if tagging else model.document_mask(**inputs)
        yield model.hidden_states(**inputs), mask


def _draw_rows(model: LexicalSAE, cut: Tensor, draw: torch.Generator) -> None:
    lexical, head = model.lexical, model.head
    # a sense that is left needs the row and the choice that it shares with those cut
    words = (~lexical.word_keep()).nonzero()[:, 0].to(cut)
    tables = [(lexical.weight, words), (lexical.bias, words), (lexical.threshold, cut)]
    if lexical.senses is not None:
        gone = (~lexical.keep[lexical.senses.coordinates()]).all(1).nonzero()  # [K', 1]
        rows = gone * lexical.senses.senses + torch.arange(lexical.senses.senses)
        tables += [(lexical.senses.weight, rows.flatten()), (lexical.senses.bias, rows.flatten())]
    if not isinstance(head, BcosHead):  # there a row is part of the length of every unit's vector
        tables.append((head.word_table(), cut))
    for table, which in tables:
        shape = (len(which), *table.shape[1:])
        table[which] = 10 * torch.randn(shape, generator=draw, dtype=table.dtype)


def _logits(model: LexicalSAE, h: Tensor, mask: Tensor) -> Tensor:
    """[B, C] of texts, [B, L, C] of a tagger."""
    tagging = model.config.task == "tagging"
    opened = model.lexical.positions(h, mask) if tagging else model.lexical.documents(h, mask)
    logits: Tensor = model.head(opened).view(*opened.shape, -1)
    return logits
