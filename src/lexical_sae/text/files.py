"""The user's own data: one file, or a folder with a file per split."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from lexical_sae.text.columns import GUESS, ReadOptions
from lexical_sae.text.convert import Reading, convert, fix_classes
from lexical_sae.text.dataset import TextDataset
from lexical_sae.text.errors import DataError
from lexical_sae.text.readers import SUFFIXES, read_table
from lexical_sae.text.source import SPLIT_ALIASES, Source


def load_file(
    path: str | os.PathLike[str], split: str = "all", options: ReadOptions = GUESS
) -> TextDataset:
    """Every row of one file, checked strictly."""
    path = Path(path)
    reading = Reading(path.stem, f"the file {path}", options)
    return convert(read_table(path, reading.options.encoding), split, reading)


def open_path(path: str | Path, options: ReadOptions) -> Source:
    """A file or a folder as a source."""
    path = Path(path)
    if path.is_dir():
        return open_folder(path, Reading(path.resolve().name, f"the folder {path}", options))
    if not path.exists():
        raise DataError(
            f"{path} was not found; give a file ({', '.join(SUFFIXES)}), a folder with train, "
            "validation and test files, or a dataset's name."
        )
    # A file named after a split is that split; any other file is one to cut the splits from.
    split = SPLIT_ALIASES.get(path.stem.lower(), "train")
    return Source(str(path), (split,), lambda wanted: load_file(path, wanted, options))


def open_folder(folder: Path, reading: Reading) -> Source:
    """A folder of ``<split>.<ending>`` files; the training file fixes the classes of all."""
    files = _split_files(folder)

    def load(split: str) -> TextDataset:
        encoding = reading.options.encoding
        fixed = reading
        if split != "train" and "train" in files and reading.open_classes:
            fixed = fix_classes(read_table(files["train"], encoding), reading)
        source = f"{reading.source} ({files[split].name})"
        return convert(read_table(files[split], encoding), split, replace(fixed, source=source))

    return Source(reading.name, tuple(files), load)


def _split_files(folder: Path) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        split = SPLIT_ALIASES.get(path.stem.lower())
        if split is None or path.suffix.lower() not in SUFFIXES:
            continue
        if split in found:
            raise DataError(
                f"{folder} holds both {found[split].name} and {path.name} for the {split} split; "
                "keep one of them."
            )
        found[split] = path
    if not found:
        raise DataError(
            f"{folder} holds no split; expected files such as train.csv, validation.csv and "
            f"test.csv, ending in one of {', '.join(SUFFIXES)}."
        )
    return found
