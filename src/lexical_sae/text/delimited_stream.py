"""CSV and TSV row by row: a row that cannot be read does not hide those after it."""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lexical_sae.text.delimited import (
    UNQUOTED_NOTE,
    allow_long_fields,
    check_header,
    has_both,
    joined_rows,
)
from lexical_sae.text.errors import DataError
from lexical_sae.text.lines import find_bad_byte, open_lines
from lexical_sae.text.rows import BadRow, Row, RowSource

MAX_RECORD = 2**22
"""Characters after which a quoted field that runs over lines is taken as never closed."""


def open_delimited(path: Path) -> RowSource:
    """The rows of a ``.csv`` or ``.tsv`` file."""
    if path.suffix.lower() == ".csv":
        return _source(path, ",", csv.QUOTE_MINIMAL)
    quoting, notes = _settle_quoting(path)
    return _source(path, "\t", quoting, *notes)


@dataclass(frozen=True)
class _Record:
    """The fields of one row and the lines it stands on, or what is wrong with it."""

    first: int
    last: int
    fields: list[str]
    lines: list[str]
    fault: str | None = None


def _source(path: Path, delimiter: str, quoting: Any, *notes: str) -> RowSource:
    columns = _read_header(path, delimiter, quoting)

    def read() -> Iterator[Row | BadRow]:
        for number, record in enumerate(_records(path, delimiter, quoting)):
            if number and record.fault is None:
                yield Row(number, record.first, dict(zip(columns, record.fields, strict=True)))
            elif number:
                yield BadRow(number, record.first, str(record.fault))

    return RowSource(tuple(columns), read, notes)


def _read_header(path: Path, delimiter: str, quoting: Any) -> list[str]:
    record = next(_records(path, delimiter, quoting), None)
    if record is None:
        raise DataError(f"{path} is empty: a header line and at least one row are needed.")
    if record.fault is not None:
        raise DataError(
            f"{path}, the header (line {record.first}): {record.fault}; correct it, and save the "
            "file as UTF-8."
        )
    return check_header(path, record.fields)


def _records(path: Path, delimiter: str, quoting: Any) -> Iterator[_Record]:
    """The header and the rows; each row must have as many fields as the header."""
    allow_long_fields()
    width = 0
    with open_lines(path, newline="") as file:
        lines = _Lines(file)
        reader = csv.reader(lines, delimiter=delimiter, quoting=quoting, strict=True)
        while True:
            lines.begin()
            fields: list[str] = []
            fault = None
            try:
                fields = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                fault = _malformed(error, lines)
            if fault is None:
                fault = next(filter(None, map(find_bad_byte, fields)), None)
            if fault is None and width and fields and len(fields) != width:
                fault = f"{len(fields)} fields, but the header has {width}"
            width = width or len(fields)
            if fields or fault:
                yield _Record(lines.first, lines.last, fields, lines.record, fault)


def _malformed(error: csv.Error, lines: _Lines) -> str:
    if lines.ran_out:
        lines.take_back()
        return "a quote mark is opened and never closed"
    where = f", on lines {lines.first:,} to {lines.last:,}" if lines.last > lines.first else ""
    return f"malformed row ({error}{where})"


class _Lines:
    """Lines for the csv module, which remembers nothing: here those of the row being read."""

    def __init__(self, file: Iterable[str]) -> None:
        self._file = iter(file)
        self._again: deque[str] = deque()
        self._size = 0
        self.first, self.last = 1, 0
        self.record: list[str] = []
        self.ran_out = False

    def begin(self) -> None:
        """The next line is the first of a row."""
        self.first, self.record, self.ran_out, self._size = self.last + 1, [], False, 0

    def take_back(self) -> None:
        """Only the first line was a row; those after it come again."""
        self._again.extendleft(reversed(self.record[1:]))
        self.last = self.first

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        # Asked for more lines, the csv module is inside a quoted field.
        self.ran_out = bool(self.record) and self._size > MAX_RECORD
        if self.ran_out:
            raise StopIteration
        try:
            line = self._again.popleft() if self._again else next(self._file)
        except StopIteration:
            self.ran_out = bool(self.record)
            raise
        self.record.append(line)
        self.last += 1
        self._size += len(line)
        return line


def _settle_quoting(path: Path) -> tuple[Any, tuple[str, ...]]:
    """Whether quote marks in a TSV file quote; many (GLUE's among them) use them as characters.

    Read both ways, the file says so itself: the way with fewer bad rows is right. Only a quoted
    field with tabs and line breaks can be made of whole rows; if it may be, the file is refused,
    as rows would be lost without a word.
    """
    bad, joined, at = 0, 0, 0
    suspect: tuple[int, _Record] | None = None
    first_joined: _Record | None = None
    width = 0
    for at, record in enumerate(_records(path, "\t", csv.QUOTE_MINIMAL)):
        width = width or len(record.fields)
        bad += record.fault is not None
        if any(map(has_both, record.fields)):
            joined += 1
            first_joined = first_joined or record
            ends = (record.lines[0], record.lines[-1])
            if suspect is None and (at == 0 or all(line.count("\t") + 1 == width for line in ends)):
                suspect = at, record
    if not bad and not joined:
        return csv.QUOTE_MINIMAL, ()
    plain_bad = sum(r.fault is not None for r in _records(path, "\t", csv.QUOTE_NONE))
    if plain_bad < bad:
        return csv.QUOTE_NONE, (UNQUOTED_NOTE,)
    if first_joined is None:
        return csv.QUOTE_MINIMAL, ()
    if suspect is not None:
        row = f"row {suspect[0]}" if suspect[0] else "the header"
        raise joined_rows(path, row, suspect[1].first, suspect[1].last)
    where = f"lines {first_joined.first} to {first_joined.last}"
    note = f"{joined:,} rows hold a quoted field with tabs and line breaks, the first on {where}"
    return csv.QUOTE_MINIMAL, (note,)
