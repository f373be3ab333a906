"""Raw labels and tags to class numbers, with one order of the classes for all splits."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from lexical_sae.text.errors import DataError
from lexical_sae.text.iob import find_violation, tag_inventory
from lexical_sae.text.table import is_missing

_INTEGER = re.compile(r"[+-]?\d+")
_DECIMAL = re.compile(r"[+-]?\d*\.\d*(?:[eE][+-]?\d+)?")
Where = Callable[[int], str]


@dataclass(frozen=True)
class LabelCodec:
    """Class names in their order, and the class number of each raw value."""

    names: tuple[str, ...]
    ids: dict[Any, int]

    def encode(self, value: Any, where: str) -> int:
        found = self.ids.get(value, self.ids.get(str(value)))
        if found is None and isinstance(value, str) and _INTEGER.fullmatch(value):
            found = self.ids.get(int(value))
        if found is None:
            shown = ", ".join(repr(name) for name in self.names[:10])
            more = ", ..." if len(self.names) > 10 else ""
            raise DataError(
                f"{where}: unknown label {value!r}; the classes are {shown}{more}, so correct the "
                "row or list the label in label_names= (or in the training split)."
            )
        return found


def clean_labels(values: Sequence[Any], where: Where) -> list[Any]:
    """Labels as int, bool or str: numbers out of CSV text, whole floats as int, nothing missing."""
    cleaned: list[Any] = []
    if all(isinstance(v, str) and _DECIMAL.fullmatch(v.strip()) for v in values):
        values = [float(v) if any(map(str.isdigit, v)) else v for v in values]
    for i, value in enumerate(values):
        if is_missing(value) or (isinstance(value, str) and not value.strip()):
            raise DataError(f"{where(i)}: the label is missing; fill it in or remove the row.")
        if isinstance(value, float):
            if not value.is_integer():
                raise DataError(
                    f"{where(i)}: the label {value} is a measurement, not a class; turn it into "
                    "classes first, for example by a threshold."
                )
            value = int(value)
        if not isinstance(value, (str, int)):
            raise DataError(
                f"{where(i)}: the label is a {type(value).__name__}; a label must be one text, "
                "whole number or true/false."
            )
        cleaned.append(value.strip() if isinstance(value, str) else value)
    if all(isinstance(v, str) and _INTEGER.fullmatch(v) for v in cleaned):
        return [int(v) for v in cleaned]
    return cleaned


def codec_from_names(names: Sequence[str]) -> LabelCodec:
    """The caller's order: a value is a name, or the position of a name."""
    check_names(names)
    ids: dict[Any, int] = {i: i for i in range(len(names))}
    if all(_INTEGER.fullmatch(name) for name in names):
        ids = {int(name): i for i, name in enumerate(names)}
    ids |= {name: i for i, name in enumerate(names)}
    return LabelCodec(tuple(names), ids)


def check_names(names: Sequence[str]) -> None:
    """Names must be there and differ from one another."""
    if not names or len(set(names)) != len(names):
        raise DataError(
            f"label_names has {len(names)} names, {len(set(names))} of them different; give each "
            "class one name of its own."
        )


def codec_from_values(values: Sequence[Any]) -> tuple[LabelCodec, tuple[str, ...]]:
    """Classes in the order of their numbers, or of the alphabet; with a note if renumbered."""
    kinds = {type(value) for value in values}
    if kinds == {bool}:
        return LabelCodec(("false", "true"), {False: 0, True: 1}), ()
    if kinds == {int}:
        distinct = sorted(set(values))
        names = tuple(str(v) for v in distinct)
        notes: tuple[str, ...] = ()
        if distinct != list(range(len(distinct))):
            notes = (f"labels {', '.join(names[:8])} numbered 0 to {len(names) - 1}",)
        return LabelCodec(names, {v: i for i, v in enumerate(distinct)}), notes
    names = tuple(sorted({str(v) for v in values}))
    return LabelCodec(names, {name: i for i, name in enumerate(names)}), ()


def names_in_number_order(
    numbers: Sequence[Any], names: Sequence[Any], where: Where
) -> tuple[str, ...]:
    """Class names ordered by the number that stands beside each of them."""
    number_of: dict[str, Any] = {}
    name_of: dict[Any, str] = {}
    for i, (number, name) in enumerate(zip(numbers, names, strict=True)):
        if is_missing(name):
            raise DataError(f"{where(i)}: the name of label {number!r} is missing; fill it in.")
        known = (number_of.setdefault(str(name), number), name_of.setdefault(number, str(name)))
        if known != (number, str(name)):
            raise DataError(
                f"{where(i)}: label {number!r} is named {str(name)!r}, but an earlier row pairs "
                f"label {known[0]!r} with name {known[1]!r}; give each label one name."
            )
    return tuple(sorted(number_of, key=lambda name: (str(type(number_of[name])), number_of[name])))


def tag_codec(rows: Sequence[Sequence[Any]], where: Where) -> LabelCodec:
    """Tag names from IOB2 strings; numbers need names from the caller."""
    for i, tags in enumerate(rows):
        if any(not isinstance(tag, str) for tag in tags):
            raise DataError(
                f"{where(i)}: the tags are numbers and nothing says what they mean; give the tag "
                "names in their order with label_names=."
            )
        violation = find_violation(tags)
        if violation is not None:
            raise DataError(
                f"{where(i)}: the tags are not IOB2 at token {violation.token + 1}: "
                f"{violation.reason}; convert the tags to IOB2."
            )
    return codec_from_names(tag_inventory(tag for tags in rows for tag in tags))
