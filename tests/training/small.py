"""A classification task that a tiny backbone learns in seconds: one word decides."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path
from typing import Any

from lexical_sae.text.dataset import TextDataset
from lexical_sae.training.config import RunConfig, resolve_config
from tests.tiny import tiny_backbone, tiny_tokenizer

GOOD = ["lovely", "great", "charming", "funny"]
BAD = ["dull", "tedious", "awful", "slow"]


@cache
def small_dataset(rows: int, seed: int = 0) -> TextDataset:
    draw = random.Random(seed)
    texts, labels = [], []
    for _ in range(rows):
        label = draw.randrange(2)
        word = draw.choice(GOOD if label else BAD)
        filler = " ".join(["and", "the", "cast", "is", "new"][: draw.randrange(6)])
        texts.append(f"the film is {word} {filler}".strip())
        labels.append(label)
    return TextDataset(
        "small", "train", "classification", ("negative", "positive"), texts=texts, labels=labels
    )


def save_backbone(folder: Path, family: str = "bert", dropout: float | None = None) -> Path:
    backbone = tiny_backbone(family)
    if dropout is not None:
        backbone.config.hidden_dropout_prob = dropout
        backbone.config.attention_probs_dropout_prob = dropout
    backbone.save_pretrained(folder)
    tiny_tokenizer("wordpiece").save_pretrained(folder)
    return folder


def small_config(backbone: Path, **settings: Any) -> RunConfig:
    chosen: dict[str, Any] = {
        "epochs": 2,
        "batch_size": 8,
        "target_words": 4,
        "start_words": 16,
        "learning_rate": 1e-3,
    }
    return resolve_config({"dataset": "small", "backbone": str(backbone), **chosen, **settings})
