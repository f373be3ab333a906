"""CSV and TSV into tables; quote marks in a TSV file may be quoting or plain characters."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lexical_sae.text.errors import DataError
from lexical_sae.text.table import Table

UNQUOTED_NOTE = "read with quote marks taken as ordinary characters"


@dataclass(frozen=True)
class _Parsed:
    """The header and the rows, with the first and last line of each (the header's first)."""

    header: list[str]
    rows: list[list[str]]
    spans: list[tuple[int, int]]

    def table(self, path: Path, *notes: str) -> Table:
        columns: dict[str, list[Any]] = {
            name: [row[i] for row in self.rows] for i, name in enumerate(self.header)
        }
        return Table(str(path), columns, lines=[start for start, _ in self.spans[1:]], notes=notes)


def read_delimited(path: Path, text: str) -> Table:
    """The table in the text of a ``.csv`` or ``.tsv`` file."""
    if path.suffix.lower() == ".csv":
        return _parse(path, text, ",", csv.QUOTE_MINIMAL).table(path)
    try:
        quoted = _parse(path, text, "\t", csv.QUOTE_MINIMAL)
    except DataError as error:
        # Many TSV files (GLUE's among them) do not quote: there a quote mark is just a character.
        plain = _parse_unquoted(path, text)
        if plain is None:
            raise error from None
        return plain.table(path, UNQUOTED_NOTE)
    return _settle_quotes(path, text, quoted)


def _settle_quotes(path: Path, text: str, quoted: _Parsed) -> Table:
    """Tell a quoted text of several lines from rows that two stray quote marks join.

    Only a field with both tabs and line breaks can be made of whole rows. Nothing in the file says
    which it is, so the lines themselves are asked: whether the file is also a table without
    quoting, and whether the lines inside such fields have a column whose values other rows share,
    as a label column would.
    """
    joined = [i for i, row in enumerate([quoted.header, *quoted.rows]) if any(map(has_both, row))]
    if not joined:
        return quoted.table(path)
    plain = _parse_unquoted(path, text)
    first, last = quoted.spans[joined[0]]
    in_header = joined[0] == 0  # no column is called that
    looks_like_rows = in_header or _share_a_column(text, quoted, joined)
    if plain is not None and looks_like_rows:
        return plain.table(path, f"{UNQUOTED_NOTE}: from line {first} on, quoting would join rows")
    if plain is None and not looks_like_rows:
        where = f"{len(joined):,} rows hold a quoted field with tabs and line breaks"
        return quoted.table(path, f"{where}, the first on lines {first} to {last}")
    row = "the header" if in_header else f"row {joined[0]}"
    raise joined_rows(path, row, first, last)


def joined_rows(path: Path, row: str, first: int, last: int) -> DataError:
    """What is said where nothing tells one long text from several rows."""
    return DataError(
        f"{path}, {row} (lines {first} to {last}): a field in quote marks runs over lines that may "
        "be rows of their own; if they are, put each text with a quote mark in double quotes and "
        'double the quotes inside it (""), and if they are one text, save the file as CSV or JSON '
        "Lines."
    )


def has_both(field: str) -> bool:
    """Tabs and line breaks: such a field may be made of whole rows."""
    return "\t" in field and ("\n" in field or "\r" in field)


def _share_a_column(text: str, quoted: _Parsed, joined: Sequence[int]) -> bool:
    """Whether the lines inside the ``joined`` rows take a column's values from the other rows."""
    lines = _lines_of(text).readlines()
    width = len(quoted.header)
    inside: list[list[str]] = []
    for index in joined:
        first, last = quoted.spans[index]
        split = [line.rstrip("\r\n").split("\t") for line in lines[first - 1 : last]]
        # The two stray marks stand in the first and the last of the rows that they join.
        if len(split[0]) == len(split[-1]) == width:
            inside += [fields for fields in split if len(fields) == width]
    skip = set(joined)
    others = [row for i, row in enumerate(quoted.rows, start=1) if i not in skip]
    return bool(inside) and any(
        {fields[c] for fields in inside} <= {row[c] for row in others if row[c].strip()}
        for c in range(width)
    )


def _parse_unquoted(path: Path, text: str) -> _Parsed | None:
    try:
        return _parse(path, text, "\t", csv.QUOTE_NONE)
    except DataError:
        return None


def _lines_of(text: str) -> io.StringIO:
    return io.StringIO(text, newline="")


def allow_long_fields() -> None:
    """The csv module refuses texts above 128 KiB unless it is told otherwise, once for all."""
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))


def _parse(path: Path, text: str, delimiter: str, quoting: Any) -> _Parsed:
    allow_long_fields()
    reader = csv.reader(_lines_of(text), delimiter=delimiter, quoting=quoting, strict=True)
    header: list[str] = []
    rows: list[list[str]] = []
    spans: list[tuple[int, int]] = []
    start = 1
    try:
        for fields in reader:
            if fields and not header:
                header = check_header(path, fields)
            elif fields:
                if len(fields) != len(header):
                    raise DataError(
                        f"{path}, row {len(rows) + 1} (line {start}): {len(fields)} fields, but "
                        f"the header has {len(header)}; put a text that holds the delimiter in "
                        "double quotes."
                    )
                rows.append(fields)
            if fields:
                spans.append((start, reader.line_num))
            start = reader.line_num + 1
    except csv.Error as error:
        raise DataError(
            f"{path}, row {len(rows) + 1} (line {start}): malformed row ({error}); put a text "
            'with quotes in double quotes and double the quotes inside it ("").'
        ) from None
    if not header:
        raise DataError(f"{path} is empty: a header line and at least one row are needed.")
    return _Parsed(header, rows, spans)


def check_header(path: Path, fields: list[str]) -> list[str]:
    """The names of the columns, each once."""
    # pandas writes its row index as a column without a name.
    names = [name.strip() or f"column_{i + 1}" for i, name in enumerate(fields)]
    for name in names:
        if names.count(name) > 1:
            raise DataError(f"{path}: the header names the column {name!r} twice; rename one.")
    return names
