"""One row of a file that is read row by row: usable, or bad for a reason that can be told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Row:
    """The values of one row, by column."""

    number: int
    """As a person counts the rows of data, from 1; the header and blank lines do not count."""
    line: int | None
    """The line of the file on which the row begins; None where a file has no lines."""
    values: dict[str, Any]


@dataclass(frozen=True)
class BadRow:
    """A row that cannot be used; whoever reads decides whether to refuse the file or go on."""

    number: int
    line: int | None
    reason: str

    def __str__(self) -> str:
        line = "" if self.line is None else f" (line {self.line:,})"
        return f"row {self.number:,}{line}: {self.reason}"


@dataclass(frozen=True)
class RowSource:
    """A file whose rows can be read lazily, as often as wanted."""

    columns: tuple[str, ...] | None
    """None where every row names its own columns (JSON Lines)."""
    read: Callable[[], Iterator[Row | BadRow]]
    notes: tuple[str, ...] = ()
    schema: Any = None
    """The pyarrow schema of a parquet file."""
