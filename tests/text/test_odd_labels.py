"""Labels, tags and their names: kept as written, or refused with the row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lexical_sae.text import DataError, load_dataset, load_file
from lexical_sae.text.hub import table_from_hub

from .conftest import write_columns
from .test_bad_files import refused


def names_read(path: Path, labels: list[Any], **options: Any) -> list[str]:
    """The class name that each of ``labels`` was given."""
    columns = {"text": [f"text {i}" for i in range(len(labels))], "label": labels}
    data = load_dataset(write_columns(path, columns), "all", **options)
    return [data.label_names[i] for i in data.labels]


@pytest.mark.parametrize(
    "labels",
    [
        ["01", "1"],
        ["007", "010"],
        ["+1", "1"],
        ["-0", "0"],
        ["1.0", "1.00"],
        ["01.0", "2.0"],
        [".e5", "."],
        ["١", "1"],
        ["9" * 5000, "9" * 4999 + "8"],
        ["9" * 19, "9" * 18 + "8"],
    ],
)
def test_texts_that_look_like_numbers_stay_names(tmp_path: Path, labels: list[str]) -> None:
    assert names_read(tmp_path / "x.csv", labels) == labels
    assert names_read(tmp_path / "x.csv", labels, label_names=labels) == labels


@pytest.mark.parametrize("labels", [["0", "10", "2"], ["0.0", "10.0", "2.0"], ["0.", "10.", "2."]])
def test_plain_numbers_are_ordered_as_numbers(tmp_path: Path, labels: list[str]) -> None:
    columns = {"text": ["a", "b", "c"], "label": labels}
    assert load_file(write_columns(tmp_path / "x.csv", columns)).label_names == ("0", "2", "10")


@pytest.mark.parametrize("label", [".5", "1.5", "1.5e0", "1.0e999"])
def test_a_measurement_in_any_spelling(tmp_path: Path, label: str) -> None:
    path = write_columns(tmp_path / "x.csv", {"text": ["a", "b"], "label": ["1.0", label]})
    refused(path, r"row 2 \(line 3\): the label .* is a measurement")


def test_a_name_that_is_a_number_is_no_position(tmp_path: Path) -> None:
    assert names_read(tmp_path / "x.csv", ["1", "1"], label_names=["1", "no"]) == ["1", "1"]
    for names in (["1.0", "0.0"], ["1", "0"], ["1.0", "1.00"], ["1.0", "1"]):
        for labels in (names, names[:1], names[1:]):
            assert names_read(tmp_path / "x.csv", labels, label_names=names) == labels
    path = write_columns(tmp_path / "y.csv", {"text": ["a", "b"], "label": ["01", "0"]})
    refused(path, "unknown label '0'", label_names=["01", "1"])
    write_columns(tmp_path / "train.csv", {"text": ["a", "b"], "label": ["1", "2"]})
    write_columns(tmp_path / "test.csv", {"text": ["a"], "label": ["01"]})
    with pytest.raises(DataError, match="unknown label '01'"):
        load_dataset(tmp_path, "test")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([0, 1], "label_names holds a int at position 1; names must be strings"),
        ([["a"], ["b"]], "holds a list at position 1"),
        ("ab", "label_names is a str; give a list of names"),
        ({"a", "b"}, "label_names is a set"),
        (5, "label_names is a int"),
        ([], "0 names"),
        (["a", " "], "an empty name at position 2"),
        (["a", "\ud800"], "name 2 holds half a character"),
    ],
)
def test_bad_label_names(tmp_path: Path, given: Any, message: str) -> None:
    path = write_columns(tmp_path / "x.csv", {"text": ["a", "b"], "label": [0, 1]})
    with pytest.raises(DataError, match=message):
        load_dataset(path, "all", label_names=given)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"task": "foo"}, "task is 'foo'; it must be 'classification' or 'tagging'"),
        ({"text_column": "label"}, "column 'label' is taken as the text and as the label"),
        ({"text_column": "text", "label_column": "text"}, "column 'text' is taken as the text and"),
        ({"tokens_column": "text", "tags_column": "text"}, "as the tokens and as the tags"),
        ({"text_column": ["text"]}, "text_column is a list; give it as a string"),
        ({"encoding": 8}, "encoding is a int"),
        ({"encoding": "punycode"}, "'punycode' is not an encoding"),
        ({"encoding": "utf\0"}, "is not an encoding"),
    ],
)
def test_bad_options(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    path = write_columns(tmp_path / "x.csv", {"text": ["a", "b"], "label": [0, 1]})
    with pytest.raises(DataError, match=message):
        load_dataset(path, "all", **options)


def test_names_column_taken_as_the_text(tmp_path: Path) -> None:
    path = write_columns(tmp_path / "x.csv", {"label_text": ["a", "b", "c"], "label": [0, 1, 0]})
    assert load_dataset(path, "all", text_column="label_text").label_names == ("0", "1")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"text": "b", "label": "\ud800"}, "row 2: the label holds half a character"),
        ({"text": "\ud800", "label": "x"}, "row 2: the text holds half .* encoded as UTF-8"),
        ({"text": "b", "label": 1, "label_name": ""}, "row 2: the name of label 1 is missing"),
        ({"text": "b", "label": 1, "label_name": []}, "row 2: the name of label 1 is a list"),
        ({"text": "b", "label": 1, "label_name": "\udfff"}, "row 2: the name of label 1 holds ha"),
    ],
)
def test_bad_label_or_name(tmp_path: Path, row: dict[str, Any], message: str) -> None:
    first = {**row, "text": "a", "label": "w"}
    if "label_name" in row:
        first["label_name"] = "w"
    path = tmp_path / "x.jsonl"
    path.write_text(f"{json.dumps(first)}\n{json.dumps(row)}\n")
    refused(path, message)


@pytest.mark.parametrize("names", [None, ["O", "B-PER", "I-PER"]])
@pytest.mark.parametrize(
    ("tag", "message"),
    [
        (None, "row 1: the tag at token 2 is empty"),
        ("", "row 1: the tag at token 2 is empty"),
        ({}, "row 1: the tag at token 2 is a dict; a tag must be a text"),
        ([1], "row 1: the tag at token 2 is a list"),
        (True, "row 1: the tag at token 2 is a bool"),
        (0.5, "row 1: the tag at token 2 is a float"),
        ("B-\udfff", "row 1: the tag at token 2 holds half a character"),
    ],
)
def test_bad_tag(tmp_path: Path, tag: object, names: list[str] | None, message: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps({"tokens": ["a", "b"], "tags": ["O", tag]}))
    refused(path, message, label_names=names)


def test_half_a_character_in_a_token(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps({"tokens": ["a", "b\udfff"], "tags": ["O", "O"]}))
    refused(path, "row 1: token 2 holds half a character")


def test_names_of_the_hub_are_texts() -> None:
    class Feature:
        names = (1, 2)

    class Dataset(dict[str, list[Any]]):
        features = {"label": Feature()}  # noqa: RUF012
        column_names = ("label",)

    table = table_from_hub(Dataset(label=[0, 1]), "hub:o/n")
    assert table.class_names == {"label": ("1", "2")}
