"""Values that break parsers: too deep, too long, twice, or not what the metadata says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lexical_sae.text import load_file

from .conftest import write_columns
from .test_bad_files import refused

DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (DEEP, "row 2: lists or objects are nested too deep"),
        ("9" * 5000, "row 2: a number has too"),
    ],
)
def test_json_that_python_cannot_read(tmp_path: Path, value: str, message: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(f'{{"text": "a", "label": 1}}\n{{"text": "b", "label": {value}}}\n')
    refused(path, message)


@pytest.mark.parametrize("value", [DEEP, "9" * 5000])
def test_json_list_that_python_cannot_read(tmp_path: Path, value: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(f'[{{"text": "b", "label": {value}}}]')
    refused(path, "nested too deeply|too many digits")


@pytest.mark.parametrize("cell", [DEEP, f"[{'-' * 100_000}1]", "[{[]: 1}]", f"[{'9' * 5000}]"])
def test_list_cell_that_python_cannot_read(tmp_path: Path, cell: str) -> None:
    path = write_columns(tmp_path / "x.csv", {"tokens": ['["a"]', cell], "tags": ['["O"]'] * 2})
    refused(path, r"row 2 \(line 3\): the tokens '\[.* are not a list")


def test_lists_and_texts_in_one_column(tmp_path: Path) -> None:
    columns = {"tokens": ['["a", "b"]', ["c"]], "tags": [["O", "O"], '["O"]']}
    assert load_file(write_columns(tmp_path / "x.jsonl", columns)).tokens == [["a", "b"], ["c"]]
    columns["tokens"][1] = 5
    refused(write_columns(tmp_path / "x.jsonl", columns), "row 2: the tokens are a int; a list is")


def write_parquet(path: Path, table: Any) -> Path:
    import pyarrow.parquet as pq

    pq.write_table(table, path)
    return path


def test_parquet_with_a_column_twice(tmp_path: Path) -> None:
    import pyarrow as pa

    table = pa.table([["a", "b"], ["c", "d"], [0, 1]], names=["text", "text", "label"])
    refused(write_parquet(tmp_path / "x.parquet", table), "has the column 'text' twice")


def test_parquet_value_that_is_no_python_value(tmp_path: Path) -> None:
    import pyarrow as pa

    text = pa.array([b"ok", b"\xff"]).view(pa.string())
    path = write_parquet(tmp_path / "x.parquet", pa.table({"text": text, "label": [0, 1]}))
    refused(path, "row 2: the value in column 'text' cannot be read .*0xff")
    when = pa.array([0, 2**55], pa.timestamp("ms"))
    table = pa.table({"text": ["a", "b"], "label": [0, 1], "when": when})
    refused(write_parquet(tmp_path / "y.parquet", table), "row 2: the value in column 'when'")


def class_label(names: object) -> str:
    return json.dumps({"info": {"features": {"label": {"_type": "ClassLabel", "names": names}}}})


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        (class_label([1, 2]), ("1", "2")),
        (class_label(["no", "yes"]), ("no", "yes")),
        *((class_label(odd), ("0", "1")) for odd in (5, "ab", None, {}, [], [None, "x"], [[], {}])),
        ('{"info": {"features": [1]}}', ("0", "1")),
        ('{"info": {"features": {"label": 5}}}', ("0", "1")),
        ('{"info": 5}', ("0", "1")),
        ("[]", ("0", "1")),
        ("not JSON", ("0", "1")),
        (DEEP, ("0", "1")),
    ],
)
def test_odd_metadata_is_ignored(tmp_path: Path, stored: str, expected: tuple[str, ...]) -> None:
    import pyarrow as pa

    table = pa.table({"text": ["a", "b"], "label": [0, 1]})
    table = table.replace_schema_metadata({"huggingface": stored})
    data = load_file(write_parquet(tmp_path / "x.parquet", table))
    assert (data.label_names, data.labels) == (expected, [0, 1])


def test_stored_names_that_repeat(tmp_path: Path) -> None:
    import pyarrow as pa

    table = pa.table({"text": ["a", "b"], "label": [0, 1]})
    table = table.replace_schema_metadata({"huggingface": class_label(["a", "a"])})
    refused(write_parquet(tmp_path / "x.parquet", table), "column 'label' has 2 names, 1 of them")
