"""Rows one after the other: their numbers, what is bad about them, and that nothing reads ahead."""

from __future__ import annotations

import json
import sys
import tracemalloc
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lexical_sae.text import DataError, delimited_stream, load_file, stream
from lexical_sae.text.rows import BadRow, Row
from lexical_sae.text.stream import open_rows
from lexical_sae.text.survey import survey

from .conftest import write_columns

SUFFIXES = [".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet"]
TEXTS = ["plain", 'quotes "in" it', "comma, tab\there", "zwei\nZeilen", "日本 🙂 é", "u2028\u2028x"]


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def texts_of(path: Path, **options: Any) -> list[str]:
    rows = open_rows(path, **options)
    return [row.values[rows.text_column] for row in rows if isinstance(row, Row)]


def bad_of(path: Path, **options: Any) -> list[tuple[int, int | None, str]]:
    found = [row for row in open_rows(path, **options) if isinstance(row, BadRow)]
    return [(row.number, row.line, row.reason) for row in found]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_format_gives_the_same_rows(tmp_path: Path, suffix: str) -> None:
    path = write_columns(tmp_path / f"x{suffix}", {"id": list("abcdef"), "text": TEXTS})
    rows = open_rows(path)
    for _ in range(2):  # each iteration begins anew
        found = list(rows)
        assert [row.number for row in found] == [1, 2, 3, 4, 5, 6]
        assert [row.values for row in found if isinstance(row, Row)] == [
            {"id": name, "text": text} for name, text in zip("abcdef", TEXTS, strict=True)
        ]
    assert rows.notes == ()


@settings(max_examples=60, deadline=None)
@given(texts=st.lists(st.text('a,"\n\r é1', min_size=1, max_size=9).filter(str.strip), min_size=1))
@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_rows_are_those_of_the_other_reader(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, texts: list[str]
) -> None:
    columns = {"text": texts, "label": [i % 2 for i in range(len(texts))]}
    path = write_columns(tmp_path_factory.mktemp("rows") / f"x{suffix}", columns)
    assert texts_of(path) == texts == load_file(path).texts


def test_line_ends_marks_and_blank_lines(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", b"\xef\xbb\xbftext,id\r\n\r\none,1\r\ntwo,2\r\n")
    assert [(r.number, r.line, r.values) for r in open_rows(path) if isinstance(r, Row)] == [
        (1, 3, {"text": "one", "id": "1"}),
        (2, 4, {"text": "two", "id": "2"}),
    ]
    path = write(tmp_path / "x.jsonl", b'\xef\xbb\xbf{"text": "one"}\r\n\r\n{"text": "two"}\r\n')
    assert [(r.number, r.line) for r in open_rows(path)] == [(1, 1), (2, 3)]
    assert texts_of(path) == ["one", "two"]
    assert texts_of(write(tmp_path / "mac.csv", "text,id\rone,1\rtwo,2\r")) == ["one", "two"]


def test_bad_rows_of_csv_after_a_quoted_line_break(tmp_path: Path) -> None:
    content = 'text,id\n"two\nlines",1\nthree,fields,2\n  ,3\none\n"a" b,4\nlast,5\n'
    path = write(tmp_path / "x.csv", content)
    assert bad_of(path) == [
        (2, 4, "3 fields, but the header has 2"),
        (3, 5, "the text (column 'text') is empty"),
        (4, 6, "1 fields, but the header has 2"),
        (5, 7, "malformed row (',' expected after '\"')"),
    ]
    assert texts_of(path) == ["two\nlines", "last"]


def test_a_quote_that_is_never_closed_hides_no_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "x.csv", 'text,id\na,1\n"b,2\nc,3\n"d,4\ne,5\n')
    # The second mark is where the first quoted field ends, so these lines are told as one row.
    assert bad_of(path) == [(2, 3, "malformed row (',' expected after '\"', on lines 3 to 5)")]
    assert texts_of(path) == ["a", "e"]
    path = write(tmp_path / "y.csv", 'text,id\na,1\n"b,2\nc,3\nd,4\n')
    assert bad_of(path) == [(2, 3, "a quote mark is opened and never closed")]
    assert texts_of(path) == ["a", "c", "d"]
    assert [row.line for row in open_rows(path)] == [2, 3, 4, 5]
    monkeypatch.setattr(delimited_stream, "MAX_RECORD", 20)
    many = "".join(f"word {i},{i}\n" for i in range(50))
    path = write(tmp_path / "z.csv", f'text,id\n"b,2\n{many}')
    assert len(bad_of(path)) == 1
    assert len(texts_of(path)) == 50


def test_bad_rows_of_json_lines(tmp_path: Path) -> None:
    lines = ['{"text": "ok"}', "", '{"text": ', "[1]", "null", '{"text": null}', '{"text": 5}']
    lines += ['{"text": "\\ud800"}', '{"other": 1}', '{"text": "\\u00e9", "o": "\\udc00"}']
    lines += ['{"text": "\\ud83d\\ude42"}']
    found = bad_of(write(tmp_path / "x.jsonl", "\n".join(lines)))
    assert [(number, line) for number, line, _ in found] == [(i, i + 1) for i in range(2, 10)]
    reasons = [reason for *_, reason in found]
    assert reasons[0].startswith("malformed JSON (Expecting value at character 11")
    assert reasons[1:5] == [
        "found a list, not a JSON object",
        "found null, not a JSON object",
        "the text (column 'text') is missing",
        "the text (column 'text') is a int, not a string",
    ]
    assert "half a character" in reasons[5]
    assert reasons[6] == "the text (column 'text') is missing"
    assert "half a character" in reasons[7]


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_bytes_that_are_not_utf8_are_bad_in_their_row_only(tmp_path: Path, suffix: str) -> None:
    path = write_columns(tmp_path / f"x{suffix}", {"text": ["a", "caXX", "é"]})
    write(path, path.read_bytes().replace(b"XX", b"f\xe9"))
    ((number, _, reason),) = bad_of(path)
    assert (number, reason) == (2, "the byte 0xe9 cannot be read as UTF-8")
    assert texts_of(path) == ["a", "é"]


def test_bad_rows_of_parquet(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    text = pa.array([b"ok", b"\xff", b" ", None, b"end"]).view(pa.string())
    pq.write_table(pa.table({"text": text, "n": [1, 2, 3, 4, 5]}), tmp_path / "x.parquet")
    found = bad_of(tmp_path / "x.parquet")
    assert [(number, line) for number, line, _ in found] == [(2, None), (3, None), (4, None)]
    assert "the value in column 'text' cannot be read" in found[0][2]
    assert texts_of(tmp_path / "x.parquet") == ["ok", "end"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_text_column(tmp_path: Path, suffix: str) -> None:
    path = write_columns(tmp_path / f"x{suffix}", {"Review": ["a"], "other": ["b"]})
    assert open_rows(path).notes == ("column 'Review' taken as the text",)
    assert texts_of(path) == ["a"]
    assert texts_of(path, text_column="other") == ["b"]
    with pytest.raises(DataError, match=r"no column 'revew'.*did you mean 'Review'\?.*'other'"):
        open_rows(path, "revew")
    path = write_columns(tmp_path / f"y{suffix}", {"a": ["x"], "b": ["y"]})
    with pytest.raises(DataError, match=r"no column that looks like the text; .* 'a', 'b'"):
        open_rows(path)


def test_a_text_column_that_comes_late_in_json_lines(tmp_path: Path) -> None:
    lines = ['{"id": 1}'] * 300 + ['{"id": 2, "text": "late"}']
    path = write(tmp_path / "x.jsonl", "\n".join(lines))
    assert texts_of(path) == ["late"]
    assert len(bad_of(path)) == 300


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.csv", "", "is empty: a header line"),
        ("x.csv", "\n\n", "is empty: a header line"),
        ("x.csv", "text,label\n", "is empty: no rows"),
        ("x.tsv", "text\tlabel\n", "is empty: no rows"),
        ("x.jsonl", "", "is empty: no rows"),
        ("x.jsonl", "not json\n", r"row 1 \(line 1\): malformed JSON .* none of its rows"),
        ("x.csv", "text,id,text\na,b,c\n", "names the column 'text' twice"),
        ("x.csv", "text\n".encode("utf-16"), r"the header \(line 1\): the byte 0xff"),
        ("x.csv", '"text,id\na,1\n', r"the header \(line 1\): a quote mark is opened and never"),
        ("x.parquet", "no parquet", "cannot be read as parquet"),
        ("x.json", ' \n[{"text": "a"}]', "holds one JSON list, .* JSON Lines"),
        ("x.txt", "text", "ends in '.txt'; the file must end in one of"),
    ],
)
def test_files_that_are_refused(
    tmp_path: Path, name: str, content: str | bytes, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        survey(open_rows(write(tmp_path / name, content)))


def test_missing_files_and_missing_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match=r"nothing\.csv was not found"):
        open_rows(tmp_path / "nothing.csv")
    path = write_columns(tmp_path / "x.parquet", {"text": ["a"]})
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(DataError, match=r'pip install "lexical-sae\[data\]"'):
        open_rows(path)


@pytest.mark.parametrize(
    ("lines", "texts", "note"),
    [
        (['a "b" c\t1', "d\t2"], ['a "b" c', "d"], None),
        (['"a ""b"" c"\t1', "d\t2"], ['a "b" c', "d"], None),
        (['"a" b\t1', "d\t2"], ['"a" b', "d"], "ordinary characters"),
        (['"a b\t1', "d\t2"], ['"a b', "d"], "ordinary characters"),
        (['"a b\t1', "d\t2", "too\tmany\tfields"], ['"a b', "d"], "ordinary characters"),
        (['"a\tb\tc\nd"\t1', "e\t2"], ["a\tb\tc\nd", "e"], "tabs and line breaks"),
    ],
)
def test_quote_marks_in_tsv(
    tmp_path: Path, lines: list[str], texts: list[str], note: str | None
) -> None:
    path = write(tmp_path / "x.tsv", "\n".join(["text\tid", *lines, ""]))
    assert texts_of(path) == texts
    notes = open_rows(path).notes
    assert not notes if note is None else note in notes[0]


def test_rows_that_stray_quotes_join_are_refused_in_tsv(tmp_path: Path) -> None:
    path = write(tmp_path / "x.tsv", 'text\tid\nMeh\t1\n"Good\t2\nBad"\t3\n')
    with pytest.raises(DataError, match=r"row 2 \(lines 3 to 4\): a field in quote marks"):
        open_rows(path)


def test_reading_is_lazy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = []
    original = stream.parse_json

    def counting(text: str, where: str) -> Any:
        parsed.append(text)
        return original(text, where)

    path = write_columns(tmp_path / "x.jsonl", {"text": [f"text {i}" for i in range(1000)]})
    rows = open_rows(path)
    monkeypatch.setattr(stream, "parse_json", counting)
    assert len(list(islice(rows, 7))) == 7
    assert len(parsed) == 7


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_memory_does_not_grow_with_the_file(tmp_path: Path, suffix: str) -> None:
    path = write_columns(
        tmp_path / f"x{suffix}", {"text": [f"{i} " + "word " * 100 for i in range(20_000)]}
    )
    next(iter(open_rows(path)))  # imports are no part of it
    tracemalloc.start()
    try:
        found = survey(open_rows(path))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (found.rows, found.bad) == (20_000, 0)
    assert peak < 2_000_000  # the texts alone take 10 MB


def test_a_survey_counts_all_bad_rows_and_keeps_the_first(tmp_path: Path) -> None:
    path = write_columns(tmp_path / "x.csv", {"text": ["a", *[" "] * 30], "id": list(range(31))})
    found = survey(open_rows(path))
    assert (found.rows, found.bad, len(found.first_bad)) == (31, 30, 20)
    assert found.columns == ("text", "id")
    assert str(found.first_bad[0]) == "row 2 (line 3): the text (column 'text') is empty"


def test_kinds_of_json_columns(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"text": "a", "i": 1, "f": 1, "b": True, "m": 1, "big": 2**63, "n": None, "l": [1]},
        {"text": "b", "i": 2**60, "f": 0.5, "b": None, "m": "x", "late": 2.5},
    ]
    path = write(tmp_path / "x.jsonl", "\n".join(map(json.dumps, rows)))
    kinds = {"text": "str", "i": "int", "f": "float", "b": "bool", "m": "mixed", "big": "mixed"}
    assert survey(open_rows(path)).kinds == kinds | {"n": "str", "l": "mixed", "late": "float"}
