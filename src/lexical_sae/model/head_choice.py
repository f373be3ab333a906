"""The kinds of head, by name."""

from __future__ import annotations

from lexical_sae.model.bcos import BcosHead
from lexical_sae.model.heads import Head, LinearHead, MLPHead

HEADS = ("mlp", "linear", "bcos")


def build_head(
    kind: str, *, dictionary_size: int, classes: int, width: int, hidden_bias: bool, depth: int = 2
) -> Head:
    if kind == "linear":
        return LinearHead(dictionary_size, classes)
    if kind == "bcos":
        return BcosHead(dictionary_size, classes, width, depth)
    return MLPHead(dictionary_size, classes, width, hidden_bias)
