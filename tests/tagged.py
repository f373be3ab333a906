"""Tagged sentences that a tiny backbone learns in seconds, and a tiny tagger."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

from lexical_sae.model.lexical_sae import LexicalSAE
from lexical_sae.text.dataset import TextDataset
from tests.tiny import tiny_model

TAGS = ("O", "B-ART", "I-ART", "B-MOOD", "I-MOOD")
ART = (("film",), ("story",), ("music",), ("old", "house"))
MOOD = (("lovely",), ("dull",), ("very", "funny"), ("quite", "sad"))


@cache
def tagged_dataset(rows: int, seed: int = 0) -> TextDataset:
    """ "the old house is very funny ." with an ART and a MOOD each."""
    draw = random.Random(seed)
    tokens, tags = [], []
    for _ in range(rows):
        art, mood = draw.choice(ART), draw.choice(MOOD)
        verb = draw.choice(["is", "was", "seems"])
        tokens.append(["the", *art, verb, *mood, "."])
        tags.append([0, 1, *[2] * (len(art) - 1), 0, 3, *[4] * (len(mood) - 1), 0])
    return TextDataset("tagged", "train", "tagging", TAGS, tokens=tokens, tags=tags)


def tiny_tagger(family: str = "bert", **options: Any) -> LexicalSAE:
    chosen = {"task": "tagging", "labels": list(TAGS), "open_words": 8}
    return tiny_model(family, **{**chosen, **options})
