"""A source of splits: which it offers, and how to load one; what is missing is cut from train."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from lexical_sae.text.dataset import TextDataset
from lexical_sae.text.errors import DataError
from lexical_sae.text.splits import TEST_FRACTION, TEST_SEED, cut_dataset

SPLITS = ("train", "validation", "test")
SPLIT_ALIASES = {
    **{"train": "train", "training": "train"},
    **dict.fromkeys(("validation", "valid", "val", "dev", "development"), "validation"),
    **dict.fromkeys(("test", "testing"), "test"),
}


@dataclass(frozen=True)
class Source:
    """One place that can answer for a dataset."""

    name: str
    splits: tuple[str, ...]
    load: Callable[[str], TextDataset]


def offered_splits(source: Source, validation_fraction: float) -> tuple[str, ...]:
    """The splits of ``source`` and those that are cut from its training split."""
    have = set(source.splits)
    if have == {"train"}:
        have.add("test")
    if "train" in have and "test" in have and validation_fraction > 0:
        have.add("validation")
    return tuple(split for split in SPLITS if split in have)


def load_split(
    source: Source, split: str, validation_fraction: float = 0.1, seed: int = 0
) -> TextDataset:
    """One split. The test part is cut first, by a fixed seed, so no option ever moves it."""
    if not 0 <= validation_fraction < 1:
        raise DataError(
            f"validation_fraction is {validation_fraction}; it must be at least 0 and below 1."
        )
    offered = offered_splits(source, validation_fraction)
    wanted = canonical_split(split)
    if wanted not in offered:
        raise DataError(
            f"{source.name} has no labelled {wanted} split; it offers {', '.join(offered)}."
        )
    if wanted in source.splits and (wanted != "train" or set(offered) == set(source.splits)):
        return source.load(wanted)
    rest = source.load("train")
    if "test" not in source.splits:
        rest, test = cut_dataset(rest, TEST_FRACTION, TEST_SEED, into="test")
        if wanted == "test":
            return replace(test, split="test")
    if "validation" in offered and "validation" not in source.splits:
        rest, validation = cut_dataset(rest, validation_fraction, seed, into="validation")
        if wanted == "validation":
            return replace(validation, split="validation")
    return rest


def canonical_split(split: str) -> str:
    """``"dev"`` as ``"validation"`` and so on; an unknown name is an error."""
    found = SPLIT_ALIASES.get(split.lower())
    if found is None:
        raise DataError(
            f"{split!r} is not a split; use train, validation or test (or 'all' for a single file)."
        )
    return found
