"""Damaged files: whatever is in them, they load or are refused with a DataError."""

from __future__ import annotations

import contextlib
import json
import math
import random
from pathlib import Path
from typing import Any

import pytest

from lexical_sae.text import DataError, TextDataset, load_dataset

from .conftest import Columns, write_columns

SHAPES: dict[str, Columns] = {
    "labels": {
        **{"text": ["Good film", 'so "so"', "one\ttab\nand a line"], "label": [1, 0, 1]},
        **{"label_name": ["yes", "no", "yes"]},
    },
    "tags": {"tokens": [["Ada", "wrote"], ["Yes"]], "tags": [["B-PER", "O"], ["O"]]},
}
PIECES = [
    *(b'"', b"\t", b"\n", b"\r", b",", b"[", b"]", b"{", b"}", b"'", b"\\", b"\x00", b"\xff"),
    *(b"null", b"NaN", b"-1", b"01", b".e5", b"1e999", b"9" * 5000, b"[" * 5000, b"true"),
    *(b"\\ud800", b'""', b"\xef\xbb\xbf", b"Infinity", b"{}", b"[[]]", b"O", b"-" * 3000),
]


def mutate(data: bytes, rng: random.Random) -> bytes:
    """``data`` with one or two places cut, doubled, swapped or filled with something odd."""
    out = bytearray(data)
    for _ in range(rng.randint(1, 2)):
        at, end = sorted(rng.randrange(len(out) + 1) for _ in range(2))
        end = min(end, at + rng.randint(0, 6))
        kind = rng.randrange(5)
        if kind == 0:
            del out[at:end]
        elif kind == 1:
            out[at:at] = out[at:end]
        elif kind == 2:
            out[at:end] = rng.choice(PIECES)
        elif kind == 3:
            out[at:at] = rng.choice(PIECES)
        elif out:
            out[min(at, len(out) - 1)] = rng.randrange(256)
    return bytes(out)


ODD: list[Any] = [
    *(None, True, 0, -1, 7, 1.0, 0.5, math.nan, math.inf, 10**400, "", " ", "01", "1", ".e5"),
    *("\ud800", "O", "I-PER", "[1", '["O"]', "[[" * 3000, [], [None], [[]], [{}], [1, "O"], {}),
    *({"a": [1]}, ["O", "O"], ["B-PER", 0], [True], [1.0], [0.5], ["\udfff"], "9" * 5000),
]


def load_or_refuse(path: Path, names: list[str] | None) -> str:
    """What became of the file; any other exception fails the test."""
    try:
        data = load_dataset(path, split="all", label_names=names)
    except DataError as error:
        said = str(error)
        return "refused" if path.name in said and "\n" not in said else said
    assert isinstance(data, TextDataset)
    json.dumps([data.texts, data.tokens, data.label_names], ensure_ascii=False).encode()
    return "loaded"


def names_of(shape: str, given: bool) -> list[str] | None:
    names = ["O", "B-PER", "I-PER"] if shape == "tags" else ["no", "yes"]
    return names if given else None


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".json", ".parquet"])
@pytest.mark.parametrize("shape", SHAPES)
def test_damaged_bytes(tmp_path: Path, suffix: str, shape: str) -> None:
    good = write_columns(tmp_path / f"good{suffix}", SHAPES[shape]).read_bytes()
    rng = random.Random(f"{suffix} {shape}")
    path = tmp_path / f"bad{suffix}"
    outcomes = set()
    for i in range(60):
        path.write_bytes(mutate(good, rng))
        outcomes.add(load_or_refuse(path, names_of(shape, i % 2 == 0)))
    assert outcomes == {"refused", "loaded"}


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl"])
@pytest.mark.parametrize("shape", SHAPES)
def test_odd_values(tmp_path: Path, suffix: str, shape: str) -> None:
    rng = random.Random(f"{suffix} {shape}")
    path = tmp_path / f"odd{suffix}"
    outcomes = set()
    for i in range(150):
        columns = {name: list(values) for name, values in SHAPES[shape].items()}
        for values in rng.choices(list(columns.values()), k=rng.randint(1, 2)):
            values[rng.randrange(len(values))] = rng.choice(ODD)
        with contextlib.suppress(UnicodeEncodeError):  # a half character cannot be written raw
            write_columns(path, columns)
            outcomes.add(load_or_refuse(path, names_of(shape, i % 2 == 0)))
    assert outcomes == {"refused", "loaded"}
