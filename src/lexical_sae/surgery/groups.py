"""Which rows belong to which group of people: by a column, by annotated targets, by terms."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from lexical_sae.surgery.rates import Bools, Frames
from lexical_sae.surgery.selection import lemma_of
from lexical_sae.text.dataset import TextDataset

WORD = re.compile(r"\w+")
Groups = dict[str, Bools]  # name → [N], true for the rows of the group


def groups_of_column(data: TextDataset, column: str) -> Groups:
    """A group per value of a column of the data; a list of values puts a row into several."""
    _known_column(data, column)
    members: dict[str, list[int]] = {}
    for row, value in enumerate(data.extra[column]):
        if isinstance(value, (float, np.floating)) and not _missing(value) and value % 1:
            raise ValueError(
                f"The column {column!r} of {data.name} holds shares such as {value:g}; expected "
                "names of groups, or give it under `columns`, which takes a half or more."
            )
        for name in _values(value):
            members.setdefault(name, []).append(row)
    if not members:
        raise ValueError(f"The column {column!r} of {data.name} is empty; no row has a group.")
    return {name: _rows(rows, len(data)) for name, rows in sorted(members.items())}


def groups_of_shares(data: TextDataset, columns: Sequence[str], edge: float = 0.5) -> Groups:
    """A group per column: the rows where its number (a share of annotators, or 0 and 1) is `edge`
    or more."""
    found: Groups = {}
    for column in columns:
        _known_column(data, column)
        values = [0.0 if _missing(value) else value for value in data.extra[column]]
        strange = [v for v in values if not isinstance(v, (bool, int, float, np.number, np.bool_))]
        if strange:
            raise ValueError(
                f"The column {column!r} of {data.name} holds {strange[0]!r}; expected numbers from "
                "0 to 1, or give it as `column`, which makes a group of each value."
            )
        found[column] = np.array([float(value) >= edge for value in values])
    return found


def frames_of(texts: Sequence[str], values: Sequence[Any] | None = None) -> Frames:
    """[N]: rows whose texts are the same but for the group that they name share a number. `values`
    are those of a column, one per row or several."""
    names = [_values(value) for value in values] if values is not None else [[] for _ in texts]
    frames = []
    for text, named in zip(texts, names, strict=True):
        plain = text.casefold()
        for name in named:
            plain = re.sub(rf"(?<!\w){re.escape(name.casefold())}(?!\w)", "\0", plain)
        frames.append(plain)
    number = {frame: i for i, frame in enumerate(dict.fromkeys(frames))}
    return np.array([number[frame] for frame in frames], dtype=np.int64)


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


def _known_column(data: TextDataset, column: str) -> None:
    if column not in data.extra:
        known = ", ".join(sorted(data.extra)) or "none"
        raise ValueError(f"{data.name} has no column {column!r}; it has: {known}.")


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
