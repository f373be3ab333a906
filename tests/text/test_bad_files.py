"""Every bad file is refused with one sentence that names the file and the row."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lexical_sae.text import DataError, load_dataset, load_splits

from .conftest import Columns, write_columns


def refused(path: Path, message: str, **options: object) -> str:
    """The one-sentence message with which loading ``path`` fails."""
    with pytest.raises(DataError) as caught:
        load_dataset(path, **{"split": "all", **options})  # type: ignore[arg-type]
    said = str(caught.value)
    assert path.name in said
    assert re.search(message, said), said
    assert "\n" not in said
    assert said.endswith(".")
    return said


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("text,label\n", "is empty"),
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("id,label\n1,a\n", "no column that looks like the text; the columns found are 'id', 'l"),
        ("text,id\nx,1\n", "looks like the label; .*'text', 'id', so name one with label_column="),
        ("text,label\nfine,a\n,b\n", r"row 2 \(line 3\): the text is empty"),
        ('text,label\nfine,a\n" \t ",b\n', r"row 2 \(line 3\): the text is empty"),
        ("text,label\nfine,a\nbad,\n", r"row 2 \(line 3\): the label is missing"),
        ('text,label\n"two\nlines",a\n\nx,y,b\n', r"row 2 \(line 5\): 3 fields, but the header"),
        ("text,label\nfine,a\nshort\n", r"row 2 \(line 3\): 1 fields, but the header has 2"),
        ('text,label\nfine,a\n"open,b\nnext,a\n', r"row 2 \(line 3\): malformed row"),
        ('text,label\n"ab" c,b\n', r"row 1 \(line 2\): malformed row"),
        ("text,text,label\na,b,c\n", "names the column 'text' twice"),
        ("text,label\nfine,1.0\nbad,0.7\n", r"row 2 \(line 3\): the label 0.7 is a measurement"),
    ],
)
def test_bad_csv(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(content, encoding="utf-8", newline="")
    refused(path, message)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('{"text": "a", "label": 1}\n{"text": "b", \n', "row 2: malformed JSON"),
        ('{"text": "a", "label": 1}\n\n["b", 1]\n', "row 3: found a list; each line must be one"),
        ("null\n", "row 1: found null"),
        ('{"text": null, "label": 1}\n', "row 1: the text .* is missing"),
        ('{"text": "a", "label": 1}\n{"label": 1}\n', "row 2: the text .* is missing"),
        ('{"text": NaN, "label": 1}\n', "row 1: the text .* is missing"),
        ('{"text": 5, "label": 1}\n', "row 1: column 'text' holds a int; the text must be a str"),
        ('{"text": "a", "label": null}\n', "row 1: the label is missing"),
        ('{"text": "a", "label": NaN}\n', "row 1: the label is missing"),
        ('{"text": "a", "label": [1, 2]}\n', "row 1: the label is a list"),
        ('{"text": "a", "label": 0.5}\n', "row 1: the label 0.5 is a measurement"),
        ('{"tokens": ["a"], "tags": null}\n', "row 1: the tags are missing"),
        ('{"tokens": ["a", 1], "tags": ["O", "O"]}\n', "row 1: token 2 is a int"),
        ('{"tokens": ["a"], "tags": [0]}\n', "row 1: the tags are numbers .* label_names="),
        ('{"tokens": ["a"], "tags": {"x": 1}}\n', "row 1: the tags are a dict; a list is needed"),
        ('{"tokens": [], "tags": []}\n', "row 1: the sentence has no tokens"),
        (
            '{"tokens": ["a"], "tags": ["O"]}\n{"tokens": ["a", "b"], "tags": ["O"]}\n',
            "row 2: 2 tokens but 1 tags",
        ),
        (
            '{"tokens": ["a"], "tags": ["B-PER"]}\n'
            '{"tokens": ["x", "Ada"], "tags": ["O", "I-PER"]}\n',
            "row 2: the tags are not IOB2 at token 2.*'I-PER' follows 'O'",
        ),
        ('{"tokens": ["a"], "tags": ["L-PER"]}\n', "row 1: the tags are not IOB2 at token 1"),
    ],
)
def test_bad_jsonl(tmp_path: Path, lines: str, message: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(lines, encoding="utf-8")
    refused(path, message)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"text": ["a", None], "label": [0, 1]}, "row 2: the text .* is missing"),
        ({"text": ["a", "b"], "label": [0.0, float("nan")]}, "row 2: the label is missing"),
        ({"text": ["a", " "], "label": [0, 1]}, "row 2: the text is empty"),
        ({"sentence1": ["a"], "label": [0]}, "the columns found are 'sentence1', 'label'"),
        (
            {"text": ["a", "b"], "label": [0, 0], "label_name": ["no", "yes"]},
            "row 2: label 0 is named 'yes', but an earlier row",
        ),
    ],
)
def test_bad_parquet(tmp_path: Path, columns: Columns, message: str) -> None:
    refused(write_columns(tmp_path / "bad.parquet", columns), message)


def test_parquet_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "bad.parquet"
    path.write_bytes(b"PAR1 this is not it")
    refused(path, "cannot be read as parquet")


def test_empty_parquet(tmp_path: Path) -> None:
    refused(write_columns(tmp_path / "none.parquet", {"text": [], "label": []}), "is empty")


def test_wrong_encoding(tmp_path: Path) -> None:
    path = tmp_path / "old.csv"
    path.write_bytes(b"text,label\nfine,1\ncaf\xe9,0\n")
    said = refused(path, r"is not UTF-8: byte 0xe9 at offset 21 \(line 3\)")
    assert "encoding='cp1252'" in said


def test_utf16_is_recognised(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    path.write_bytes("text,label\nfine,1\n".encode("utf-16"))
    refused(path, "encoding='utf-16'")
    assert load_dataset(path, "all", encoding="utf-16").texts == ["fine"]


def test_unknown_encoding(tmp_path: Path) -> None:
    path = write_columns(tmp_path / "x.csv", {"text": ["a"], "label": [1]})
    refused(path, "'utf-99' is not an encoding", encoding="utf-99")


def test_named_column_that_is_missing(tmp_path: Path) -> None:
    path = write_columns(tmp_path / "x.csv", {"text": ["a"], "label": [1]})
    refused(path, "no column 'body' for the text; .*'text', 'label'", text_column="body")


def test_unknown_label(tmp_path: Path) -> None:
    path = write_columns(tmp_path / "x.csv", {"text": ["a", "b"], "label": ["good", "meh"]})
    refused(path, r"row 2 \(line 3\): unknown label 'meh'; .*'bad'", label_names=["bad", "good"])


def test_number_outside_the_given_names(tmp_path: Path) -> None:
    path = write_columns(tmp_path / "x.jsonl", {"text": ["a", "b"], "label": [1, 2]})
    refused(path, "row 2: unknown label 2", label_names=["bad", "good"])


def test_repeated_label_names(tmp_path: Path) -> None:
    path = write_columns(tmp_path / "x.jsonl", {"text": ["a", "b"], "label": [1, 0]})
    with pytest.raises(DataError, match="2 names, 1 of them different"):
        load_dataset(path, "all", label_names=["bad", "bad"])


def test_label_unseen_in_train(tmp_path: Path) -> None:
    write_columns(tmp_path / "train.csv", {"text": ["a", "b"], "label": ["x", "y"]})
    write_columns(tmp_path / "test.csv", {"text": ["c", "d"], "label": ["x", "new"]})
    with pytest.raises(DataError, match=r"test\.csv, row 2 \(line 3\): unknown label 'new'"):
        load_dataset(tmp_path, "test")


def test_tag_unseen_in_train(tmp_path: Path) -> None:
    write_columns(tmp_path / "train.jsonl", {"tokens": [["a"]], "tags": [["B-PER"]]})
    write_columns(tmp_path / "test.jsonl", {"tokens": [["a"]], "tags": [["B-LOC"]]})
    with pytest.raises(DataError, match=r"test\.jsonl, row 1: unknown label 'B-LOC'"):
        load_dataset(tmp_path, "test")


def test_one_class_only(tmp_path: Path) -> None:
    columns = {"text": [f"t{i}" for i in range(30)], "label": ["same"] * 30}
    path = write_columns(tmp_path / "train.csv", columns)
    with pytest.raises(DataError, match="all 30 rows have the one class 'same'"):
        load_splits(path)
    assert len(load_dataset(path, "all")) == 30


def test_unsupported_ending(tmp_path: Path) -> None:
    path = tmp_path / "data.xlsx"
    path.write_bytes(b"x")
    refused(path, r"ends in '\.xlsx'; the file must end in one of \.parquet, \.csv")


def test_file_not_found(tmp_path: Path) -> None:
    refused(tmp_path / "gone.csv", "was not found", split="train")


def test_folder_without_splits(tmp_path: Path) -> None:
    write_columns(tmp_path / "reviews.csv", {"text": ["a"], "label": [1]})
    refused(tmp_path, "holds no split; expected files such as train.csv", split="train")


def test_folder_with_two_files_for_a_split(tmp_path: Path) -> None:
    for name in ("dev.csv", "valid.csv"):
        write_columns(tmp_path / name, {"text": ["a"], "label": [1]})
    refused(tmp_path, "both dev.csv and valid.csv for the validation split", split="train")


def test_all_rows_are_for_single_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="split 'all' is for a single file"):
        load_dataset(tmp_path, "all")


def test_unknown_option(tmp_path: Path) -> None:
    path = write_columns(tmp_path / "x.csv", {"text": ["a"], "label": [1]})
    with pytest.raises(TypeError, match="txt_column"):
        load_dataset(path, "all", txt_column="text")  # type: ignore[call-arg]


def test_broken_list_in_a_cell(tmp_path: Path) -> None:
    path = tmp_path / "ner.csv"
    path.write_text('tokens,tags\n"[""a""]",[""O""]\n', encoding="utf-8")
    refused(path, r"row 1 \(line 2\): the tags .* are not a list")
