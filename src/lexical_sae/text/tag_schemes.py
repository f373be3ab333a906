"""Other ways to write entities as tags, turned into IOB2.

IOB1 starts an entity with ``I-TYPE`` and uses ``B-TYPE`` only between two entities of one type that
touch. BILOU marks the last token (L) and single ones (U); BIOES calls them E and S.
"""

from __future__ import annotations

from collections.abc import Sequence

from lexical_sae.text.iob import OUTSIDE, find_violation

_LAST_AND_SINGLE = {"BILOU": ("L", "U"), "BIOES": ("E", "S")}


def to_iob2(rows: Sequence[Sequence[str]]) -> tuple[list[list[str]], str | None]:
    """The rows in IOB2, and the name of the scheme that they were in (None: IOB2 already).

    Rows that are in none of the schemes come back as they are, for the check to say where.
    """
    as_lists = [list(tags) for tags in rows]
    if all(find_violation(tags) is None for tags in rows):
        return as_lists, None
    for scheme, (last, single) in _LAST_AND_SINGLE.items():
        if _prefixes(rows) <= {"B", "I", last, single}:
            if all(_closes(tags, last, single) for tags in rows):
                swap = {last: "I", single: "B"}
                return [[_with(tag, swap) for tag in tags] for tags in rows], scheme
            if {last, single} & _prefixes(rows):
                return as_lists, None
    if _prefixes(rows) <= {"B", "I"} and all(_is_iob1(tags) for tags in rows):
        return [_from_iob1(tags) for tags in rows], "IOB1"
    return as_lists, None


def _prefixes(rows: Sequence[Sequence[str]]) -> set[str]:
    return {tag.partition("-")[0] for tags in rows for tag in tags if tag != OUTSIDE}


def _kind(tag: str) -> str:
    return tag.partition("-")[2]


def _with(tag: str, swap: dict[str, str]) -> str:
    prefix, dash, kind = tag.partition("-")
    return f"{swap.get(prefix, prefix)}{dash}{kind}"


def _closes(tags: Sequence[str], last: str, single: str) -> bool:
    """Every entity is B, I…, last of one type, or a single."""
    inside = ""  # the type of the entity that is open
    for tag in (*tags, OUTSIDE):
        prefix, kind = tag.partition("-")[0], _kind(tag)
        starts = prefix in ("B", single) or tag == OUTSIDE
        if starts == bool(inside) or (inside and kind != inside) or (tag != OUTSIDE and not kind):
            return False
        inside = kind if prefix in ("B", "I") else ""
    return True


def _is_iob1(tags: Sequence[str]) -> bool:
    """B-TYPE only right after an entity of the same type."""
    before = ""
    for tag in tags:
        if tag != OUTSIDE and not _kind(tag):
            return False
        if tag.startswith("B-") and _kind(tag) != before:
            return False
        before = _kind(tag)
    return True


def _from_iob1(tags: Sequence[str]) -> list[str]:
    found, before = [], ""
    for tag in tags:
        starts = tag.startswith("I-") and _kind(tag) != before
        found.append(f"B-{_kind(tag)}" if starts else tag)
        before = _kind(tag)
    return found
