"""Quote marks in TSV files: quoting, or plain characters that must not swallow rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lexical_sae.text import DataError, load_file

from .conftest import write_columns


def write(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="")
    return path


STRAY = ('"Good film\t1', 'Bad film"\t0', "Meh\t1")


def test_joined_rows_are_read_without_quoting_if_their_labels_are_known(tmp_path: Path) -> None:
    data = load_file(write(tmp_path / "x.tsv", "text\tlabel", *STRAY, "No\t0"))
    assert data.texts == ['"Good film', 'Bad film"', "Meh", "No"]
    assert data.labels == [1, 0, 1, 0]
    assert "ordinary characters: from line 2 on" in data.notes[0]


def test_rows_or_one_text_is_refused_where_nothing_tells(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"x\.tsv, row 1 \(lines 2 to 3\): a field in quote marks"):
        load_file(write(tmp_path / "x.tsv", "text\tlabel", *STRAY))


def test_joined_rows_beside_a_row_with_too_many_fields_are_refused(tmp_path: Path) -> None:
    lines = ["Meh\t1", "No\t0", '"Good\t1', "too\tmany\tfields", 'Bad"\t0']
    with pytest.raises(DataError, match=r"row 3 \(lines 4 to 6\)"):
        load_file(write(tmp_path / "x.tsv", "text\tlabel", *lines))


def test_a_header_that_swallows_rows(tmp_path: Path) -> None:
    lines = ['text\tlabel\t"note', 'Good\t1\tx"', "Meh\t0\ty"]
    data = load_file(write(tmp_path / "x.tsv", *lines))
    assert data.texts == ["Good", "Meh"]
    with pytest.raises(DataError, match=r"the header \(lines 1 to 2\)"):
        load_file(write(tmp_path / "y.tsv", *lines[:1], 'Good\t1\tx\tz"', "Meh\t0\ty"))


def test_quoted_text_with_tabs_and_lines_is_one_text_and_noted(tmp_path: Path) -> None:
    columns = {"text": ["a\tb\tc\nd", "e", "f\ng"], "label": ["x", "y", "x"]}
    data = load_file(write_columns(tmp_path / "x.tsv", columns))
    assert data.texts == columns["text"]
    assert data.notes == (
        "1 rows hold a quoted field with tabs and line breaks, the first on lines 2 to 3",
    )


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.text('a"\t\n\r1', min_size=1, max_size=8).filter(str.strip), max_size=5),
    st.booleans(),
)
def test_texts_come_back_or_something_is_said(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], label_first: bool
) -> None:
    texts = [*texts, "plain"]
    columns = {"text": texts, "label": [i % 2 for i in range(len(texts))]}
    if label_first:
        columns = {"label": columns["label"], "text": texts}
    path = write_columns(tmp_path_factory.mktemp("quotes") / "x.tsv", columns)
    mixed = any("\t" in t and ("\n" in t or "\r" in t) for t in texts)
    try:
        data = load_file(path)
    except DataError:
        assert mixed
    else:
        assert data.texts == texts or (mixed and "ordinary characters" in data.notes[0])
