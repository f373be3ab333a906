"""Which rows belong to which group of people: by a column, by annotated targets, by terms."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lexical_sae.surgery.selection import lemma_of
from lexical_sae.text.dataset import TextDataset

WORD = re.compile(r"\w+")
Bools = NDArray[np.bool_]
Groups = dict[str, Bools]  # name → [N], true for the rows of the group


def groups_of_column(data: TextDataset, column: str) -> Groups:
    """A group per value of a column of the data; a list of values puts a row into several."""
    if column not in data.extra:
        known = ", ".join(sorted(data.extra)) or "none"
        raise ValueError(f"{data.name} has no column {column!r}; it has: {known}.")
    members: dict[str, list[int]] = {}
    for row, value in enumerate(data.extra[column]):
        for name in _values(value):
            members.setdefault(name, []).append(row)
    if not members:
        raise ValueError(f"The column {column!r} of {data.name} is empty; no row has a group.")
    return {name: _rows(rows, len(data)) for name, rows in sorted(members.items())}


def groups_of_terms(
    texts: Sequence[str], terms: Mapping[str, Sequence[str]], *, exact: bool = False
) -> Groups:
    """A group per name: the texts that hold one of its terms, in any case and, unless `exact`, in
    any form of the same lemma. A term of several words is looked for as it is."""
    form: Callable[[str], str] = str if exact else lemma_of
    held = [{form(word) for word in WORD.findall(text.casefold())} for text in texts]
    found: Groups = {}
    for name, words in terms.items():
        single = {form(word.casefold()) for word in words if WORD.fullmatch(word)}
        phrases = [word.casefold() for word in words if not WORD.fullmatch(word)]
        marks = [
            not single.isdisjoint(some) or any(_holds(text, phrase) for phrase in phrases)
            for some, text in zip(held, texts, strict=True)
        ]
        found[name] = np.array(marks, dtype=bool)
    return found


def _holds(text: str, phrase: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(phrase)}(?!\w)", text.casefold()) is not None


def _values(value: Any) -> list[str]:
    many = value if isinstance(value, (list, tuple, np.ndarray)) else [value]
    return sorted({str(one).strip() for one in many if not _missing(one) and str(one).strip()})


def _missing(value: Any) -> bool:
    """None, any kind of NaN, and pandas' NA, which is neither equal nor unequal to itself."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (float, np.floating)) and bool(np.isnan(value))


def _rows(rows: Sequence[int], count: int) -> Bools:
    found = np.zeros(count, dtype=bool)
    found[list(rows)] = True
    return found
