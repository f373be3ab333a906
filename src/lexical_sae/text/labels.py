"""Raw labels and tags to class numbers, with one order of the classes for all splits."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from lexical_sae.text.encodable import check_encodable
from lexical_sae.text.errors import DataError
from lexical_sae.text.iob import find_violation, tag_inventory
from lexical_sae.text.table import is_missing

# Whole numbers as Python writes them: only these are the same text again as a class name.
_PLAIN_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")
_PLAIN_WHOLE = re.compile(r"(?:0|-?[1-9][0-9]{0,14})\.0*")
_LIKE_INTEGER = re.compile(r"[+-]?\d+")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
Where = Callable[[int], str]


@dataclass(frozen=True)
class LabelCodec:
    """Class names in their order, and the class number of each raw value."""

    names: tuple[str, ...]
    ids: dict[Any, int]

    def encode(self, value: Any, where: str) -> int:
        found = self.ids.get(value, self.ids.get(str(value)))
        if found is None and isinstance(value, str) and _PLAIN_INTEGER.fullmatch(value):
            found = self.ids.get(int(value))
        if found is None:
            shown = ", ".join(_show(name) for name in self.names[:10])
            more = ", ..." if len(self.names) > 10 else ""
            raise DataError(
                f"{where}: unknown label {_show(value)}; the classes are {shown}{more}, so "
                "correct the row or list the label in label_names= (or in the training split)."
            )
        return found


def _show(value: object) -> str:
    said = repr(value)
    return said if len(said) <= 60 else f"{said[:57]}..."


def clean_labels(values: Sequence[Any], where: Where) -> list[Any]:
    """Labels as int, bool or str: numbers out of CSV text, whole floats as int, nothing missing."""
    cleaned: list[Any] = []
    if all(isinstance(v, str) and _DECIMAL.fullmatch(v.strip()) for v in values):
        values = _read_decimals([v.strip() for v in values])
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
        if isinstance(value, str):
            value = value.strip()
            check_encodable(value, where(i), "the label")
        cleaned.append(value)
    if all(isinstance(v, str) and _PLAIN_INTEGER.fullmatch(v) for v in cleaned):
        return [int(v) for v in cleaned]
    return cleaned


def _read_decimals(values: Sequence[str]) -> Sequence[Any]:
    """Numbers such as 1.0, unless they are names: 01.0 is one, and so is 1.00 beside 1.0."""
    numbers = [float(v) for v in values]
    measured = not all(number.is_integer() for number in numbers)
    plain = all(_PLAIN_WHOLE.fullmatch(v) for v in values)
    one_spelling = len(set(numbers)) == len(set(values))
    return numbers if measured or (plain and one_spelling) else values


def codec_from_names(names: Sequence[str]) -> LabelCodec:
    """The caller's order: a value is a name, or the position of a name."""
    ids: dict[Any, int] = {i: i for i in range(len(names))}
    if any(_LIKE_INTEGER.fullmatch(name) or _DECIMAL.fullmatch(name) for name in names):
        # Where a name is a number, a number is a name and never a position.
        whole = [i for i, name in enumerate(names) if _PLAIN_WHOLE.fullmatch(name)]
        ids = {int(float(names[i])): i for i in whole}
        ids |= {int(name): i for i, name in enumerate(names) if _PLAIN_INTEGER.fullmatch(name)}
    ids |= {name: i for i, name in enumerate(names)}
    return LabelCodec(tuple(names), ids)


def given_names(names: object) -> tuple[str, ...]:
    """The caller's ``label_names``, checked."""
    if isinstance(names, (str, bytes, Mapping, Set)) or not isinstance(names, Iterable):
        raise DataError(
            f"label_names is a {type(names).__name__}; give a list of names in their order, such "
            'as ["no", "yes"].'
        )
    listed = list(names)
    for i, name in enumerate(listed):
        if not isinstance(name, str):
            raise DataError(
                f"label_names holds a {type(name).__name__} at position {i + 1}; names must be "
                'strings, such as "0".'
            )
    check_names(listed)
    return tuple(listed)


def check_names(names: Sequence[str], whose: str = "label_names") -> None:
    """Names must be there, say something and differ from one another."""
    if not names or len(set(names)) != len(names):
        raise DataError(
            f"{whose} has {len(names)} names, {len(set(names))} of them different; give each "
            "class one name of its own."
        )
    for i, name in enumerate(names):
        if not name.strip():
            raise DataError(f"{whose} has an empty name at position {i + 1}; fill it in.")
        check_encodable(name, whose, f"name {i + 1}")


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
        if is_missing(name) or (isinstance(name, str) and not name.strip()):
            raise DataError(f"{where(i)}: the name of label {number!r} is missing; fill it in.")
        if not isinstance(name, (str, int, float)):
            raise DataError(
                f"{where(i)}: the name of label {number!r} is a {type(name).__name__}; a name must "
                "be a text."
            )
        check_encodable(str(name), where(i), f"the name of label {number!r}")
        known = (number_of.setdefault(str(name), number), name_of.setdefault(number, str(name)))
        if known != (number, str(name)):
            raise DataError(
                f"{where(i)}: label {number!r} is named {str(name)!r}, but an earlier row pairs "
                f"label {known[0]!r} with name {known[1]!r}; give each label one name."
            )
    return tuple(sorted(number_of, key=lambda name: (str(type(number_of[name])), number_of[name])))


def tag_codec(rows: Sequence[Sequence[str | int]], where: Where) -> LabelCodec:
    """Tag names from IOB2 strings; numbers need names from the caller."""
    for i, tags in enumerate(rows):
        if any(not isinstance(tag, str) for tag in tags):
            raise DataError(
                f"{where(i)}: the tags are numbers and nothing says what they mean; give the tag "
                "names in their order with label_names=."
            )
        violation = find_violation([str(tag) for tag in tags])
        if violation is not None:
            raise DataError(
                f"{where(i)}: the tags are not IOB2 at token {violation.token + 1}: "
                f"{violation.reason}; convert the tags to IOB2."
            )
    return codec_from_names(tag_inventory(str(tag) for tags in rows for tag in tags))
