"""A shortcut on purpose: a neutral word that gives a class away in training, and nowhere else."""

from __future__ import annotations

import random
from dataclasses import replace

from lexical_sae.studies.surgery_config import Planted
from lexical_sae.text.dataset import TextDataset


def plant(data: TextDataset, planted: Planted, seed: int) -> TextDataset:
    """Training texts: the word stands in most texts of its class and in few others."""
    label = _label(data, planted)
    draw = random.Random(seed)
    texts = []
    for text, own in zip(data.texts, data.labels, strict=True):
        share = planted.share if own == label else planted.elsewhere
        texts.append(with_word(text, planted.word, draw) if draw.random() < share else text)
    return replace(data, texts=texts, notes=(*data.notes, f"{planted.word!r} planted"))


def plant_everywhere(data: TextDataset, planted: Planted, seed: int) -> TextDataset:
    """Texts to measure on: the word stands in half of them, whatever their class. The column
    `planted` tells which."""
    draw = random.Random(seed)
    marks = [draw.random() < 0.5 for _ in data.texts]
    pairs = zip(data.texts, marks, strict=True)
    texts = [with_word(text, planted.word, draw) if mark else text for text, mark in pairs]
    column = [planted.word if mark else "none" for mark in marks]
    return replace(data, texts=texts, extra={**data.extra, "planted": column})


def with_word(text: str, word: str, draw: random.Random) -> str:
    """The text with the word at a random place."""
    words = text.split()
    words.insert(draw.randint(0, len(words)), word)
    return " ".join(words)


def _label(data: TextDataset, planted: Planted) -> int:
    if planted.label not in data.label_names:
        raise ValueError(
            f"planted.label is {planted.label!r}; {data.name} has {', '.join(data.label_names)}."
        )
    return data.label_names.index(planted.label)
