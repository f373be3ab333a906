"""Compaction: words that never open on a calibration set are suppressed, then sliced away."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import nn

from lexical_sae.model.config import LexicalSAEConfig
from lexical_sae.model.mode import in_mode
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


def _rows(parameter: nn.Parameter, rows: torch.Tensor) -> nn.Parameter:
    return nn.Parameter(parameter[rows].clone(), requires_grad=parameter.requires_grad)


@torch.no_grad()
def slice_dictionary(model: LexicalSAE, coordinates: torch.Tensor) -> LexicalSAE:
    """A copy with these coordinates only (ascending); the rest of the dictionary is gone."""
    small = copy.deepcopy(model)
    settings = small.config.to_dict() | {"dictionary_size": int(coordinates.numel())}
    small.config = LexicalSAEConfig.from_dict(settings)
    lexical = small.lexical
    for name in ("weight", "bias", "threshold"):
        setattr(lexical, name, _rows(getattr(lexical, name), coordinates))
    for name in ("token_ids", "keep"):
        setattr(lexical, name, getattr(lexical, name)[coordinates].clone())
    small.head.select_words(coordinates)
    if model.dictionary is not None:
        small.dictionary = model.dictionary.select(coordinates.tolist())
    return small
