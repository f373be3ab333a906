"""The rows of a file one after the other, whatever its format; memory does not grow with it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lexical_sae.text.columns import choose_text_column
from lexical_sae.text.delimited_stream import open_delimited
from lexical_sae.text.encodable import check_encodable
from lexical_sae.text.errors import DataError
from lexical_sae.text.lines import find_bad_byte, open_lines
from lexical_sae.text.parquet import check_column_names, damaged, import_parquet, reason_of
from lexical_sae.text.readers import JSON_SUFFIXES, SUFFIXES, kind_of, parse_json
from lexical_sae.text.rows import BadRow, Row, RowSource
from lexical_sae.text.table import is_missing

PARQUET_ROWS = 256
"""Rows of a parquet file that are turned into Python values at a time."""
JSON_NAMES_FROM = 100
"""Objects of a JSON Lines file whose columns are looked at to find the text."""


@dataclass(frozen=True)
class RowStream:
    """A file and the column of its texts; each iteration reads it anew, from the first row."""

    path: Path
    source: RowSource
    text_column: str
    notes: tuple[str, ...]
    words: bool = False
    """Whether a row may hold a list of words instead of a text."""

    def __iter__(self) -> Iterator[Row | BadRow]:
        for row in self.source.read():
            fault = self._text_fault(row) if isinstance(row, Row) else None
            yield row if fault is None else BadRow(row.number, row.line, fault)

    def _text_fault(self, row: Row) -> str | None:
        text, role = row.values.get(self.text_column), f"the text (column {self.text_column!r})"
        if is_missing(text):
            return f"{role} is missing"
        if self.words and isinstance(text, list):
            good = text and all(isinstance(word, str) and word.strip() for word in text)
            return None if good else f"{role} is no list of words"
        if not isinstance(text, str):
            return f"{role} is a {type(text).__name__}, not a string"
        return None if text.strip() else f"{role} is empty"


def check_input(path: Path) -> None:
    """Refuse what is no file, and endings that are not known."""
    if not path.is_file():
        raise DataError(f"{path} was not found; check the path.")
    if path.suffix.lower() not in SUFFIXES:
        raise DataError(
            f"{path} ends in {path.suffix or 'nothing'!r}; the file must end in one of "
            f"{', '.join(SUFFIXES)}."
        )


def open_rows(path: Path, text_column: str | None = None, *, words: bool = False) -> RowStream:
    """The rows of ``path``, read lazily; a row that cannot be used comes as a ``BadRow``.

    Unless ``text_column`` names it, the column of the texts is guessed as for datasets, and noted.
    With ``words`` the texts may be lists of words, as taggers read them.
    """
    check_input(path)
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        source = _open_parquet(path)
    elif suffix in JSON_SUFFIXES:
        source = _open_json_lines(path)
    else:
        source = open_delimited(path)
    columns = source.columns
    if columns is None:
        columns = _json_names(source, text_column, words)
    if not columns:
        first = next(source.read(), None)
        if isinstance(first, BadRow):
            raise DataError(f"{path}, {first}; none of its rows can be read, so check the format.")
        if first is None:
            raise empty(path)
    column, note = choose_text_column(str(path), columns, text_column, words=words)
    return RowStream(path, source, column, (*source.notes, *((note,) if note else ())), words)


def empty(path: Path) -> DataError:
    """What is said of a file without rows."""
    return DataError(f"{path} is empty: no rows were found; at least one is needed.")


# -- JSON Lines ------------------------------------------------------------------------------------


def _open_json_lines(path: Path) -> RowSource:
    def read() -> Iterator[Row | BadRow]:
        # Only \n ends a line: U+2028 and its like are legal inside a JSON string.
        with open_lines(path, newline="\n") as file:
            number = 0
            for line, written in enumerate(file, start=1):
                if written.strip():
                    number += 1
                    yield _read_object(number, line, written)

    if path.suffix.lower() == ".json":
        with open_lines(path, newline="\n") as file:
            start = next(filter(str.strip, file), "")
        if start.lstrip().startswith("["):
            raise DataError(
                f"{path} holds one JSON list, which cannot be read row by row; save it as JSON "
                "Lines (.jsonl), one object per line."
            )
    return RowSource(None, read)


def _read_object(number: int, line: int, written: str) -> Row | BadRow:
    fault = find_bad_byte(written)
    if fault is not None:
        return BadRow(number, line, fault)
    try:
        value = parse_json(written, "row")
        if not isinstance(value, dict):
            return BadRow(number, line, f"found {kind_of(value)}, not a JSON object")
        if "\\u" in written:  # the one way to half a character
            check_encodable(json.dumps(value, ensure_ascii=False), "row", "the row")
    except DataError as error:
        return BadRow(number, line, _short(error))
    return Row(number, line, value)


def _short(error: DataError) -> str:
    """What was found, without the place, which the row knows, and without the advice."""
    return str(error).removeprefix("row: ").partition("; ")[0]


def _json_names(source: RowSource, wanted: str | None, words: bool) -> tuple[str, ...]:
    """The columns of the first objects, and of more if the text is not among them."""
    names: dict[str, None] = {}
    objects = 0
    for row in source.read():
        if isinstance(row, Row):
            objects += 1
            names.update(dict.fromkeys(row.values))
        if objects >= JSON_NAMES_FROM and _names_text(names, wanted, words):
            break
    return tuple(names)


def _names_text(names: dict[str, None], wanted: str | None, words: bool) -> bool:
    try:
        choose_text_column("", list(names), wanted, words=words)
    except DataError:
        return False
    return True


# -- Parquet ---------------------------------------------------------------------------------------


def _open_parquet(path: Path) -> RowSource:
    pq = import_parquet(path)
    try:
        with pq.ParquetFile(path) as file:
            schema = file.schema_arrow
    except Exception as error:  # a damaged file can fail anywhere in pyarrow, in any way
        raise damaged(path, error) from None
    names = list(schema.names)
    check_column_names(path, names)

    def read() -> Iterator[Row | BadRow]:
        try:
            number = 0
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches(batch_size=PARQUET_ROWS):
                    yield from _batch_rows(batch, names, number)
                    number += batch.num_rows
        except Exception as error:
            raise damaged(path, error) from None

    return RowSource(tuple(names), read, schema=schema)


def _batch_rows(batch: Any, names: list[str], before: int) -> Iterator[Row | BadRow]:
    try:
        columns = [batch.column(i).to_pylist() for i in range(len(names))]
    except Exception:  # something in it is no Python value, such as bytes that are not UTF-8
        for index in range(batch.num_rows):
            yield _one_row(batch, names, index, before + index + 1)
        return
    for index, values in enumerate(zip(*columns, strict=True)):
        yield Row(before + index + 1, None, dict(zip(names, values, strict=True)))


def _one_row(batch: Any, names: list[str], index: int, number: int) -> Row | BadRow:
    values: dict[str, Any] = {}
    for i, name in enumerate(names):
        try:
            values[name] = batch.column(i)[index].as_py()
        except Exception as error:
            reason = f"the value in column {name!r} cannot be read ({reason_of(error)})"
            return BadRow(number, None, reason)
    return Row(number, None, values)
