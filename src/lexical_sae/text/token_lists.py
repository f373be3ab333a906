"""Columns of tokens and of tags: lists as they are, or written in a text cell."""

from __future__ import annotations

import ast
import contextlib
import json
from collections.abc import Sequence
from typing import Any

from lexical_sae.text.columns import TOKENS_NAMES
from lexical_sae.text.encodable import check_encodable
from lexical_sae.text.errors import DataError
from lexical_sae.text.table import Table, is_missing

# What json and ast raise for a cell that is no list, from a stray comma to a thousand brackets.
_NOT_A_LIST = (ValueError, SyntaxError, TypeError, RecursionError, MemoryError)


def read_tokens(table: Table, column: str) -> list[list[str]]:
    """The tokens of each row, which must be texts."""
    rows = _read_lists(table, column, "tokens")
    for i, tokens in enumerate(rows):
        for j, token in enumerate(tokens):
            if not isinstance(token, str):
                raise DataError(
                    f"{table.where(i)}: token {j + 1} is {_kind(token)}; every token must be a "
                    "string."
                )
    return rows


def read_tags(table: Table, column: str) -> list[list[str | int]]:
    """The tags of each row, which must be texts or whole numbers."""
    rows = _read_lists(table, column, "tags")
    return [_clean_tags(tags, table.where(i)) for i, tags in enumerate(rows)]


def _clean_tags(tags: Sequence[Any], where: str) -> list[str | int]:
    cleaned: list[str | int] = []
    for j, tag in enumerate(tags):
        if is_missing(tag) or (isinstance(tag, str) and not tag.strip()):
            raise DataError(f"{where}: the tag at token {j + 1} is empty; fill it in.")
        if isinstance(tag, float) and tag.is_integer():
            tag = int(tag)
        if isinstance(tag, bool) or not isinstance(tag, (str, int)):
            raise DataError(
                f"{where}: the tag at token {j + 1} is {_kind(tag)}; a tag must be a text such as "
                "'B-PER' or a whole number."
            )
        if isinstance(tag, str):
            check_encodable(tag, where, f"the tag at token {j + 1}")
        cleaned.append(tag)
    return cleaned


def written_words(value: Any, column: str) -> str | list[str]:
    """What a tagger reads in one cell: a list of words, as it is or written in the cell, or a text.

    In a column of tokens, words without brackets are separated by spaces.
    """
    if not isinstance(value, str):
        return list(value)
    if value.strip().startswith("["):
        with contextlib.suppress(DataError):
            found = _parse_list(value, "cell", "tokens")
            if found and all(isinstance(word, str) and word.strip() for word in found):
                return found
    # what begins with a bracket and is no list of words is a text like any other
    return value.split() if column.lower() in TOKENS_NAMES else value


def _read_lists(table: Table, column: str, role: str) -> list[list[Any]]:
    """Lists as they are, or out of a text: a JSON or Python list, or separated by spaces."""
    values = table.columns[column]
    bracketed = all(v.strip().startswith("[") for v in values if isinstance(v, str))
    rows: list[list[Any]] = []
    for i, value in enumerate(values):
        if is_missing(value):
            raise DataError(f"{table.where(i)}: the {role} are missing; fill them in.")
        if isinstance(value, str):
            value = _parse_list(value, table.where(i), role) if bracketed else value.split()
        if not isinstance(value, list):
            raise DataError(f"{table.where(i)}: the {role} are {_kind(value)}; a list is needed.")
        rows.append(value)
    return rows


def _parse_list(cell: str, where: str, role: str) -> list[Any]:
    for parse in (json.loads, ast.literal_eval):
        try:
            value = parse(cell)
        except _NOT_A_LIST:
            continue
        if isinstance(value, list):
            return value
    raise DataError(
        f'{where}: the {role} {cell[:40]!r} are not a list; write ["a", "b"] or separate them by '
        "spaces."
    )


def _kind(value: object) -> str:
    return "empty (null)" if value is None else f"a {type(value).__name__}"
