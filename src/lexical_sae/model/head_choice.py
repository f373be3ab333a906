"""The kinds of head, by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lexical_sae.model.bcos import BcosHead
from lexical_sae.model.heads import Head, LinearHead, MLPHead

if TYPE_CHECKING:
    from lexical_sae.model.config import LexicalSAEConfig

HEADS = ("mlp", "linear", "bcos")


def build_head(
    kind: str,
    *,
    dictionary_size: int,
    classes: int,
    width: int,
    hidden_bias: bool,
    depth: int = 2,
    senses: tuple[Sequence[int], int] = ((), 1),
) -> Head:
    """`senses`: the words that have several, and how many."""
    if kind == "linear":
        return LinearHead(dictionary_size, classes)
    if kind == "bcos":
        head = BcosHead(dictionary_size, classes, width, depth)
        head.count_senses(*senses)
        return head
    return MLPHead(dictionary_size, classes, width, hidden_bias)


def head_of(config: LexicalSAEConfig) -> Head:
    """The head that a model's config describes."""
    return build_head(
        config.head,
        dictionary_size=config.dictionary_size,
        classes=len(config.labels),
        width=config.head_width,
        hidden_bias=config.hidden_bias,
        depth=config.head_depth,
        senses=(config.expanded_words, config.senses),
    )
