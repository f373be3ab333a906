"""What a trained run is measured by on its held-out texts, at its end or anew on other rows."""

from __future__ import annotations

from typing import Any

from torch import nn

from lexical_sae.model.lexical_sae import LexicalSAE
from lexical_sae.training.batching import Collate, EncodedTexts
from lexical_sae.training.config import RunConfig
from lexical_sae.training.measure import measure
from lexical_sae.training.reference import Reference, collect_reference

REFERENCE_ROWS = 1000  # held-out texts on which drift is measured


def untrained_reference(
    model: nn.Module, texts: EncodedTexts | None, collate: Collate
) -> Reference | None:
    """What the untrained model opens for the first held-out texts, to measure drift against."""
    if texts is None or not isinstance(model, LexicalSAE):
        return None
    return collect_reference(model, texts.head(REFERENCE_ROWS), collate, REFERENCE_ROWS)


def final_measure(
    config: RunConfig,
    model: Any,
    texts: EncodedTexts,
    collate: Collate,
    untrained: Reference | None,
) -> dict[str, float]:
    """Of a dense twin only what it has: it opens no words."""
    return measure(
        model,
        texts,
        collate,
        circuit_fraction=None if config.dense_twin else config.settings.circuit_fraction,
        reference=None if untrained is None else untrained.words,
        reference_rows=REFERENCE_ROWS,
        residual=not config.dense_twin,
    )
