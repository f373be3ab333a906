"""The words of a run that get senses, before its training, and their labels after it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lexical_sae.model.lexical_sae import LexicalSAE
from lexical_sae.model.sense_notes import label_senses
from lexical_sae.training.settings import Settings


def with_senses(model: LexicalSAE, settings: Settings, texts: Sequence[str]) -> LexicalSAE:
    """The model itself, expanded if the settings ask for it."""
    if settings.senses is not None:
        model.expand(
            some_texts(texts, settings.senses.texts),
            settings.senses.words,
            senses=settings.senses.count,
            most_words=settings.senses.most_words,
        )
    return model


def with_labels(model: Any, settings: Settings, texts: Sequence[str]) -> None:
    """Label the senses of a trained model by texts that it was trained on."""
    if settings.senses is not None and isinstance(model, LexicalSAE):
        label_senses(model, some_texts(texts, settings.senses.texts))


def some_texts(texts: Sequence[str], most: int) -> list[str]:
    """At most so many, evenly spread."""
    number = min(most, len(texts))
    return [texts[i * len(texts) // number] for i in range(number)]
