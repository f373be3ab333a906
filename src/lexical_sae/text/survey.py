"""One pass over a file before the work begins: how many rows, which are bad, which columns."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from lexical_sae.text.rows import BadRow
from lexical_sae.text.stream import RowStream, empty

KEPT = 20
"""Bad rows that are remembered with their reasons; the rest are only counted."""
_EXACT_IN_FLOAT = 2**53


@dataclass(frozen=True)
class Survey:
    """What a file holds."""

    rows: int
    bad: int
    first_bad: tuple[BadRow, ...]
    kinds: dict[str, str]
    """Kind of each column's values in JSON Lines ("bool", "int", "float", "str", or "mixed");
    empty for files that say it themselves."""
    columns: tuple[str, ...]


def survey(stream: RowStream) -> Survey:
    """Read every row once; nothing but counts and names is kept."""
    rows = bad = 0
    first_bad: list[BadRow] = []
    named = stream.source.columns
    kinds: dict[str, set[str]] = defaultdict(set)
    for row in stream:
        rows += 1
        if isinstance(row, BadRow):
            bad += 1
            if len(first_bad) < KEPT:
                first_bad.append(row)
        elif named is None:
            for name, value in row.values.items():
                kinds[name].add(_kind(value))
    if not rows:
        raise empty(stream.path)
    return Survey(
        rows=rows,
        bad=bad,
        first_bad=tuple(first_bad),
        kinds={name: _merge(found) for name, found in kinds.items()},
        columns=tuple(kinds) if named is None else named,
    )


def _kind(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, int) and not isinstance(value, bool):
        if abs(value) <= _EXACT_IN_FLOAT:
            return "int"
        return "long" if -(2**63) <= value < 2**63 else "mixed"
    return type(value).__name__ if isinstance(value, (bool, float, str)) else "mixed"


def _merge(kinds: set[str]) -> str:
    kinds = kinds - {"null"}
    if not kinds:
        return "str"
    if kinds <= {"int", "long"}:
        return "int"
    if kinds == {"int", "float"}:
        return "float"
    return kinds.pop() if len(kinds) == 1 else "mixed"
