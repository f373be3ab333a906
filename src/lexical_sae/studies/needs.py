"""A dataset that a study reads besides those that it trains on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lexical_sae.text.dataset import TextDataset


@dataclass(frozen=True)
class Need:
    """`used` says, of its splits, what the study takes from them."""

    dataset: str
    used: Callable[[Mapping[str, TextDataset]], str]
    columns: Mapping[str, str] = field(default_factory=dict)  # as `load_dataset` takes them


def in_splits(splits: Mapping[str, TextDataset], name: str) -> TextDataset:
    if name not in splits:
        raise ValueError(f"it has no split {name!r}; expected one of {', '.join(splits)}.")
    return splits[name]
