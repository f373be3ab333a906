"""The user's own files: what goes in comes out, in every format."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lexical_sae.text import DataError, load_dataset, load_file, load_splits

from .conftest import write_columns

FORMATS = [".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet"]
NASTY = [
    'she said "no", twice',
    '"',
    "line\nbreak",
    "carriage\r\nreturn and lone \r",
    "tab\there",
    "👩‍👩‍👧 emoji",
    "zero\u200bwidth \u2028 separators \x85",
    "\ufeffbyte order mark inside",
    "  spaces kept  ",
    "back\\slash \\n",
    "ünï, cødé; 日本語",
    "[not, a list]",
    "NaN",
]


@pytest.mark.parametrize("suffix", FORMATS)
def test_nasty_strings_round_trip(tmp_path: Path, suffix: str) -> None:
    labels = ["x" if i % 2 else "y" for i in range(len(NASTY))]
    path = write_columns(tmp_path / f"nasty{suffix}", {"text": NASTY, "label": labels})
    data = load_dataset(path, split="all")
    assert data.texts == NASTY
    assert [data.label_names[i] for i in data.labels] == labels
    assert data.split == "all"
    assert data.notes == ()


@settings(max_examples=40, deadline=None)
@given(
    texts=st.lists(
        st.text(
            st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1
        ).filter(str.strip),
        min_size=1,
        max_size=8,
    ),
    suffix=st.sampled_from(FORMATS),
)
def test_any_text_round_trips(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], suffix: str
) -> None:
    path = tmp_path_factory.mktemp("any") / f"any{suffix}"
    write_columns(path, {"text": texts, "label": [i % 2 for i in range(len(texts))]})
    if suffix == ".tsv" and any("\t" in t and ("\n" in t or "\r" in t) for t in texts):
        return  # may also be rows joined by stray quote marks: see test_stray_quotes
    assert load_file(path).texts == texts


@pytest.mark.parametrize("suffix", FORMATS)
def test_tagging_round_trip(tmp_path: Path, suffix: str) -> None:
    tokens = [["Ada", "said", '"hi"'], ["[", "]"]]
    tags = [["B-PER", "O", "O"], ["O", "B-LOC"]]
    path = write_columns(tmp_path / f"ner{suffix}", {"tokens": tokens, "ner_tags": tags})
    data = load_file(path)
    assert data.task == "tagging"
    assert data.tokens == tokens
    assert [[data.label_names[t] for t in row] for row in data.tags] == tags
    assert data.notes == ("column 'ner_tags' taken as the tags",)


def test_tokens_separated_by_spaces(tmp_path: Path) -> None:
    path = tmp_path / "ner.tsv"
    path.write_text("words\ttags\nAda wrote\tB-PER O\n[ yes\tO O\n", encoding="utf-8")
    assert load_file(path).tokens == [["Ada", "wrote"], ["[", "yes"]]


def test_utf8_with_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "bom.csv"
    path.write_bytes("text,label\nfine,1\nbad,0\n".encode("utf-8-sig"))
    assert load_file(path).texts == ["fine", "bad"]


def test_other_encoding_on_request(tmp_path: Path) -> None:
    path = tmp_path / "old.csv"
    path.write_bytes("text,label\ncafé,1\nthé,0\n".encode("cp1252"))
    assert load_dataset(path, "all", encoding="cp1252").texts == ["café", "thé"]


def test_unquoted_tsv_is_read_with_literal_quotes(tmp_path: Path) -> None:
    path = tmp_path / "glue.tsv"
    path.write_text('sentence\tlabel\n"Great" film\t1\nso "so\t0\n', encoding="utf-8")
    data = load_file(path)
    assert data.texts == ['"Great" film', 'so "so']
    assert "quote marks" in data.notes[0]


def test_guesses_are_noted_and_other_columns_kept(tmp_path: Path) -> None:
    columns = {"Review": ["a", "b"], "Sentiment": ["pos", "neg"], "id": [7, 8]}
    data = load_file(write_columns(tmp_path / "r.jsonl", columns))
    assert data.notes == (
        "column 'Review' taken as the text",
        "column 'Sentiment' taken as the label",
    )
    assert data.label_names == ("neg", "pos")
    assert data.extra == {"id": [7, 8]}


def test_named_columns_need_no_note(tmp_path: Path) -> None:
    columns = {"text": ["no", "no"], "body2": ["a", "b"], "y2": [True, False]}
    path = write_columns(tmp_path / "r.parquet", columns)
    data = load_dataset(path, "all", text_column="body2", label_column="y2")
    assert (data.texts, data.labels, data.label_names) == (["a", "b"], [1, 0], ("false", "true"))
    assert data.notes == ()


def test_numbers_with_names_beside_them(tmp_path: Path) -> None:
    columns = {"text": ["a", "b", "c"], "label": [2, 0, 2], "label_name": ["up", "down", "up"]}
    data = load_file(write_columns(tmp_path / "n.csv", columns))
    assert data.label_names == ("down", "up")
    assert data.labels == [1, 0, 1]
    assert "label_name" not in data.extra


def test_numbers_that_do_not_start_at_zero_are_renumbered_and_noted(tmp_path: Path) -> None:
    path = write_columns(tmp_path / "s.csv", {"text": ["a", "b", "c"], "stars": ["10", "2", "-1"]})
    data = load_file(path)
    assert data.label_names == ("-1", "2", "10")
    assert data.labels == [2, 1, 0]
    assert "labels -1, 2, 10 numbered 0 to 2" in data.notes


@pytest.mark.parametrize("values", [["good", "bad"], [1, 0], [1.0, 0.0]])
def test_label_names_of_the_caller(tmp_path: Path, values: list[object]) -> None:
    path = write_columns(tmp_path / "c.parquet", {"text": ["a", "b"], "label": values})
    data = load_dataset(path, "all", label_names=["bad", "good"])
    assert (data.labels, data.label_names) == ([1, 0], ("bad", "good"))


def test_tag_numbers_with_names(tmp_path: Path) -> None:
    path = write_columns(tmp_path / "t.jsonl", {"tokens": [["Ada"]], "tags": [[1]]})
    assert load_dataset(path, "all", label_names=["O", "B-PER", "I-PER"]).tags == [[1]]


def test_names_stored_by_the_datasets_package(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    features = datasets.Features(
        {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["no", "yes"])}
    )
    made = datasets.Dataset.from_dict({"text": ["a", "b"], "label": [1, 1]}, features=features)
    made.to_parquet(str(tmp_path / "h.parquet"))
    data = load_file(tmp_path / "h.parquet")
    assert (data.label_names, data.labels) == (("no", "yes"), [1, 1])


def test_folder_of_splits_shares_the_order_of_train(tmp_path: Path) -> None:
    write_columns(tmp_path / "train.csv", {"text": ["a", "b", "c"], "label": ["z", "m", "a"]})
    write_columns(tmp_path / "dev.jsonl", {"text": ["d", "e"], "label": ["z", "m"]})
    write_columns(tmp_path / "test.parquet", {"text": ["f"], "label": ["z"]})
    splits = load_splits(tmp_path)
    assert list(splits) == ["train", "validation", "test"]
    assert {data.label_names for data in splits.values()} == {("a", "m", "z")}
    assert splits["test"].labels == [2]
    assert load_dataset(tmp_path, "valid").texts == ["d", "e"]


def test_single_file_is_cut_and_says_so(tmp_path: Path) -> None:
    columns = {"text": [f"text {i}" for i in range(100)], "label": [i % 2 for i in range(100)]}
    path = write_columns(tmp_path / "reviews.csv", columns)
    splits = load_splits(path)
    assert {split: len(data) for split, data in splits.items()} == {
        **{"train": 81, "validation": 9, "test": 10}
    }
    assert any("cut from train" in note for note in splits["test"].notes)


def test_file_named_after_a_split_is_that_split(tmp_path: Path) -> None:
    path = write_columns(tmp_path / "test.csv", {"text": ["a", "b"], "label": [1, 0]})
    assert len(load_dataset(path, "test")) == 2
    with pytest.raises(DataError, match="no labelled train split; it offers test"):
        load_dataset(path)
