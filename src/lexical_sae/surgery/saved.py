"""Removals in saved runs: a new folder with another mask and another list of words that are left
unread; the original is only read.

The mask is a tensor of the weights' file, one byte per word, and the list stands in the config, so
nothing is computed and no model is built: the other bytes are copied as they are, and it takes as
long as the copy.
"""

from __future__ import annotations

import hashlib
import json
import math
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lexical_sae.model.dictionary import Dictionary, dictionary_of, surface_of
from lexical_sae.surgery.removal import Removal, removal_of
from lexical_sae.text.unread import NOT_FOR_TAGGERS, checked_words
from lexical_sae.text.write_rows import replacing

RECORD = "suppression.json"
KEPT = ("config.yaml", "environment.json")  # of a run, so that its data are found again
MASK, IDS = "lexical.keep", "lexical.token_ids"
CONFIG = "config.json"


class SavedMask(NamedTuple):
    """Where the mask of a saved model stands, and what it says."""

    file: Path
    start: int  # of its bytes in the file
    keep: np.ndarray  # [V] bool
    dictionary: Dictionary


def suppress_saved(
    run: Path,
    model_folder: Path,
    output: Path,
    words: Sequence[str],
    *,
    patterns: Iterable[str] = (),
    exact: bool = False,
    how: str = "cut",
) -> tuple[Dictionary, Removal]:
    """A copy of a run without some words; its dictionary and what was found."""
    saved = read_mask(model_folder)
    found = removal_of(saved.dictionary, words, patterns=patterns, exact=exact, how=how)
    keep = saved.keep.copy()
    keep[list(found.coordinates)] = False
    if not keep.any():
        raise ValueError(
            f"This would cut all {len(keep):,} words of the dictionary; at least one must stay."
        )
    config = _config(model_folder)
    if found.unread and config.get("task") == "tagging":
        raise ValueError(NOT_FOR_TAGGERS)
    selection = found.selection
    entry = {
        "of": _sha256(saved.file),
        "asked": [*selection.found, *selection.missing],
        "words": [saved.dictionary.words[v] for v in found.coordinates],
        "not_found": list(selection.missing),
        **({"unread": list(found.unread)} if found.unread else {}),
    }
    config["unread"] = checked_words([*config["unread"], *found.unread])
    _write(saved, keep, config, run, model_folder, output, entry)
    return saved.dictionary, found


def restore_saved(run: Path, model_folder: Path, output: Path) -> tuple[int, int]:
    """A copy of a run with all words back; how many are open and how many are read again."""
    saved, config = read_mask(model_folder), _config(model_folder)
    back, read = int((~saved.keep).sum()), len(config["unread"])
    if not back and not read:
        raise ValueError(f"No word is cut out of {run}, so there is nothing to restore.")
    entry = {"of": _sha256(saved.file), "restored": back, **({"read": read} if read else {})}
    config["unread"] = []
    _write(saved, np.ones_like(saved.keep), config, run, model_folder, output, entry)
    return back, read


def _config(folder: Path) -> dict[str, Any]:
    file = folder / CONFIG
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        found = None
    if not isinstance(found, dict):
        raise ValueError(f"{file} is missing or damaged; restore the original file.")
    try:
        found["unread"] = checked_words(found.get("unread", []))
    except ValueError:
        raise ValueError(f"{file} is damaged ('unread'); restore the original file.") from None
    return found


def read_mask(folder: Path) -> SavedMask:
    """The mask and the dictionary of a saved model, without building it."""
    for file in sorted(folder.glob("*.safetensors")):
        with file.open("rb") as source:
            size = int.from_bytes(source.read(8), "little")
            try:
                header = json.loads(source.read(size))
                if MASK not in header or IDS not in header:
                    continue
                found = {name: _tensor(source, header[name], 8 + size) for name in (MASK, IDS)}
                entries = [entry for name, entry in header.items() if name != "__metadata__"]
                end = 8 + size + max(entry["data_offsets"][1] for entry in entries)
                if file.stat().st_size != end or len(found[MASK]) != len(found[IDS]):
                    raise ValueError("the file is too short")
            except (ValueError, KeyError, TypeError, OverflowError, MemoryError):
                raise ValueError(f"{file} is damaged; restore the original file.") from None
        dictionary = _dictionary(folder, found[IDS].tolist())
        said = header.get("__metadata__", {}).get("lexical_sae.dictionary")
        if said != dictionary.hash:
            raise ValueError(
                f"The tokenizer in {folder} is not the one that the model was saved with; restore "
                "the original files."
            )
        start = 8 + size + int(header[MASK]["data_offsets"][0])
        return SavedMask(file, start, found[MASK].astype(bool), dictionary)
    raise ValueError(f"{folder} holds no lexical-sae model; expected model.safetensors with words.")


def _tensor(source: Any, entry: dict[str, Any], data: int) -> np.ndarray:
    kind = {"BOOL": "uint8", "I64": "<i8"}[entry["dtype"]]
    first, last = entry["data_offsets"]
    source.seek(data + first)
    read = source.read(last - first)
    if len(read) != last - first or math.prod(entry["shape"]) * np.dtype(kind).itemsize != len(
        read
    ):
        raise ValueError("the file is too short")
    return np.frombuffer(read, dtype=kind)


def _dictionary(folder: Path, token_ids: list[int]) -> Dictionary:
    from tokenizers import Tokenizer

    file = folder / "tokenizer.json"
    try:
        tokenizer = Tokenizer.from_file(str(file))
    except Exception:  # the library's own, of no class
        raise ValueError(f"{file} is missing or damaged; restore the original file.") from None
    decode = tokenizer.decoder.decode if tokenizer.decoder is not None else " ".join
    tokens = [tokenizer.id_to_token(index) for index in token_ids]
    words = ["" if token is None else surface_of(decode, token) for token in tokens]
    return dictionary_of(token_ids, words)


def history(run: Path) -> list[dict[str, Any]]:
    """The cuts that led to a run, the first first."""
    file = run / RECORD
    if not file.is_file():
        return []
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except ValueError:
        raise ValueError(f"{file} is damaged; remove it to go on without its record.") from None
    return found if isinstance(found, list) else []


def _write(
    saved: SavedMask,
    keep: np.ndarray,
    config: dict[str, Any],
    run: Path,
    model_folder: Path,
    output: Path,
    entry: dict[str, Any],
) -> None:
    """The weights last: a folder with weights in it is whole."""
    record = [*history(run), entry]
    target = output / "model"
    target.mkdir(parents=True, exist_ok=True)
    for name in KEPT:
        if (run / name).is_file():
            shutil.copyfile(run / name, output / name)
    with replacing(output / RECORD) as scratch:
        scratch.write_text(json.dumps(record, indent=2, ensure_ascii=False), encoding="utf-8")
    for file in sorted(model_folder.iterdir()):
        # its card has the numbers of the model before
        changed = (saved.file.name, CONFIG, "README.md")
        if file.is_file() and file.name not in changed:
            shutil.copyfile(file, target / file.name)
    with replacing(target / CONFIG) as scratch:
        text = json.dumps(config, indent=2, sort_keys=True) + "\n"
        scratch.write_text(text, encoding="utf-8")
    with replacing(target / saved.file.name) as scratch:
        shutil.copyfile(saved.file, scratch)
        with scratch.open("r+b") as weights:
            weights.seek(saved.start)
            weights.write(keep.astype(np.uint8).tobytes())


def _sha256(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as source:
        while block := source.read(2**20):
            digest.update(block)
    return digest.hexdigest()
