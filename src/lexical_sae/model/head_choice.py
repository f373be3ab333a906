"""The kinds of head, by name."""

from __future__ import annotations

from collections.abc import Sequence

from lexical_sae.model.bcos import BcosHead
from lexical_sae.model.heads import Head, LinearHead, MLPHead

HEADS = ("mlp", "linear", "bcos")


def build_head(
    kind: str,
    *,
    dictionary_size: int,
    classes: int,
    width: int,
    hidden_bias: bool,
    depth: int = 2,
    expanded_words: Sequence[int] = (),
    senses: int = 1,
) -> Head:
    if kind == "linear":
        return LinearHead(dictionary_size, classes)
    if kind == "bcos":
        head = BcosHead(dictionary_size, classes, width, depth)
        head.count_senses(expanded_words, senses)
        return head
    return MLPHead(dictionary_size, classes, width, hidden_bias)
