"""Rows as they stand in a source, before anyone decides what they mean."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True)
class Table:
    """Columns of equal length, and where each row stands so that messages can point at it."""

    origin: str
    """The file or repository the rows came from, as the messages name it."""
    columns: dict[str, list[Any]]
    lines: list[int] | None = None
    """Line of the file on which each row begins, where that differs from the row number."""
    rows: list[int] | None = None
    """Original row numbers (1-based) if some rows were dropped."""
    class_names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Names that the source itself gives to the numbers of a column."""
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), []))

    def where(self, index: int) -> str:
        """Name a row for a message: file, 1-based row and, if known, line."""
        row = self.rows[index] if self.rows is not None else index + 1
        line = f" (line {self.lines[index]})" if self.lines is not None else ""
        return f"{self.origin}, row {row}{line}"

    def keep(self, indices: Sequence[int], *notes: str) -> Table:
        """Only the rows at ``indices``, still known by their original numbers."""
        return replace(
            self,
            columns={name: [col[i] for i in indices] for name, col in self.columns.items()},
            lines=None if self.lines is None else [self.lines[i] for i in indices],
            rows=[i + 1 if self.rows is None else self.rows[i] for i in indices],
            notes=(*self.notes, *notes),
        )


def is_missing(value: object) -> bool:
    """None and NaN."""
    return value is None or (isinstance(value, float) and math.isnan(value))
