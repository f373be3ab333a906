"""Compaction: words that never open on a calibration set are suppressed, then sliced away."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from lexical_sae.model.config import LexicalSAEConfig
from lexical_sae.model.expansion import rows_of
from lexical_sae.model.lexical_layer import LexicalLayer
from lexical_sae.model.mode import in_mode
from lexical_sae.model.senses import SenseRouter
from lexical_sae.text.tokenise import check_texts

if TYPE_CHECKING:
    from lexical_sae.model.lexical_sae import LexicalSAE

BATCH = 32


@torch.no_grad()
def words_that_open(model: LexicalSAE, texts: Sequence[str]) -> torch.Tensor:
    """[V] bool: whether each word opens at least once, for the model's own task."""
    check_texts(texts)
    seen = torch.zeros_like(model.lexical.keep)
    run = model.tag if model.config.task == "tagging" else model.classify
    with in_mode(model, training=False):
        for start in range(0, len(texts), BATCH):
            inputs = model.encode(texts[start : start + BATCH]).model_inputs()
            seen[run(**inputs).open_words.word] = True
    return seen


def compact_model(model: LexicalSAE, texts: Sequence[str]) -> LexicalSAE:
    """A copy that is exactly equal to `model` with every word suppressed that no text opens."""
    seen = words_that_open(model, texts)
    if not bool(seen.any()):
        raise ValueError(
            f"No word opens on the {len(texts)} texts given; calibrate or train the model first."
        )
    return slice_dictionary(model, seen.nonzero()[:, 0])


@torch.no_grad()
def slice_dictionary(model: LexicalSAE, coordinates: torch.Tensor) -> LexicalSAE:
    """A copy with these coordinates only (ascending); the rest of the dictionary is gone.

    A word with senses stays whole if one of them does, since the choice is among all of them: its
    others are then suppressed.
    """
    small = copy.deepcopy(model)
    lexical = small.lexical
    settings = small.config.to_dict()
    if lexical.senses is not None:
        suppressed = torch.ones_like(lexical.keep)
        suppressed[coordinates] = False
        lexical.keep &= ~suppressed
        several = lexical.senses.coordinates()  # [K, M]
        stays = (~suppressed[several]).any(1)
        coordinates = torch.unique(torch.cat([coordinates, several[stays].flatten()]))
        settings |= _slice_senses(lexical, coordinates, stays)
    settings |= {"dictionary_size": int(coordinates.numel())}
    small.config = LexicalSAEConfig.from_dict(settings)
    words = coordinates[coordinates < lexical.words]
    for name, which in (("weight", words), ("bias", words), ("threshold", coordinates)):
        setattr(lexical, name, rows_of(getattr(lexical, name), which))
    for name in ("token_ids", "keep"):
        setattr(lexical, name, getattr(lexical, name)[coordinates].clone())
    small.head.select_words(coordinates)
    if model.dictionary is not None:
        small.dictionary = model.dictionary.select(coordinates.tolist())
    return small


def _slice_senses(
    lexical: LexicalLayer, coordinates: torch.Tensor, stays: torch.Tensor
) -> dict[str, Any]:
    """Only the expanded words that stay [K bool], as they are counted in the sliced dictionary."""
    senses = lexical.senses
    assert senses is not None
    if not bool(stays.any()):
        lexical.senses = None
        return {"expanded_words": [], "senses": 1}
    words = torch.searchsorted(coordinates, senses.words[stays])
    plain = int((coordinates < senses.plain_words).sum())
    small = SenseRouter(words.tolist(), senses.senses, plain, senses.weight.shape[1])
    rows = stays.repeat_interleave(senses.senses).nonzero()[:, 0]
    small.weight, small.bias = rows_of(senses.weight, rows), rows_of(senses.bias, rows)
    lexical.senses = small.to(senses.weight.device)
    return {"expanded_words": words.tolist()}
