"""Which column is the text and which the label: said by the caller, or guessed and noted."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypedDict

from lexical_sae.text.dataset import Task, check_task
from lexical_sae.text.errors import DataError
from lexical_sae.text.labels import given_names
from lexical_sae.text.table import Table

TEXT_NAMES = (
    *("text", "sentence", "content", "review", "comment", "comment_text", "message", "document"),
    *("body", "tweet", "snippet", "utterance", "query", "question", "review_text", "title"),
)
LABEL_NAMES = (
    *("label", "labels", "class", "category", "target", "sentiment", "intent", "topic"),
    *("polarity", "y", "tag", "rating", "stars"),
)
NAME_OF_LABEL_NAMES = ("label_name", "label_text", "class_name")
TOKENS_NAMES = ("tokens", "words")
TAGS_NAMES = ("tags", "ner_tags", "labels", "ner")


@dataclass(frozen=True)
class ReadOptions:
    """What the caller says about the columns; None means guess."""

    text_column: str | None = None
    label_column: str | None = None
    tokens_column: str | None = None
    tags_column: str | None = None
    label_names: Sequence[str] | None = None
    task: Task | None = None
    encoding: str | None = None

    def __post_init__(self) -> None:
        for name in ("text_column", "label_column", "tokens_column", "tags_column", "encoding"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise DataError(f"{name} is a {type(value).__name__}; give it as a string.")
        if self.task is not None:
            check_task(self.task)
        if self.label_names is not None:
            object.__setattr__(self, "label_names", given_names(self.label_names))


class ReadArguments(TypedDict, total=False):
    """The keyword arguments with which a caller describes the columns."""

    text_column: str | None
    label_column: str | None
    tokens_column: str | None
    tags_column: str | None
    label_names: Sequence[str] | None
    """Class or tag names in their order."""
    task: Task | None
    """"classification" or "tagging", where the columns leave it open."""
    encoding: str | None
    """Encoding of a text file that is not UTF-8."""


GUESS = ReadOptions()


@dataclass(frozen=True)
class Columns:
    """The columns to read: inputs (text or tokens), targets (label or tags), names of labels."""

    task: Task
    inputs: str
    targets: str
    target_names: str | None
    notes: tuple[str, ...]


def choose_columns(table: Table, options: ReadOptions) -> Columns:
    """The columns the caller named, the rest guessed; every guess is noted."""
    task = options.task or _guess_task(table, options)
    if task == "classification":
        inputs, note_in = _pick(table, "text", options.text_column, TEXT_NAMES)
        targets, note_out = _pick(table, "label", options.label_column, LABEL_NAMES)
        names = None if options.label_column else _find(table, NAME_OF_LABEL_NAMES)
        names = None if names == inputs else names
    else:
        inputs, note_in = _pick(table, "tokens", options.tokens_column, TOKENS_NAMES)
        targets, note_out = _pick(table, "tags", options.tags_column, TAGS_NAMES)
        names = None
    if inputs == targets:
        parts = ("text", "label") if task == "classification" else ("tokens", "tags")
        raise DataError(
            f"{table.origin}: column {inputs!r} is taken as the {parts[0]} and as the {parts[1]}; "
            f"name two different columns with {parts[0]}_column= and {parts[1]}_column=."
        )
    return Columns(task, inputs, targets, names, tuple(n for n in (note_in, note_out) if n))


def choose_text_column(
    origin: str, names: Sequence[str], given: str | None = None, *, words: bool = False
) -> tuple[str, str | None]:
    """The column of the text alone, where no labels are read; and a note if it was guessed. With
    ``words`` a column of tokens comes first."""
    table = Table(origin, {name: [] for name in names})
    tokens = _find(table, TOKENS_NAMES) if words and given is None else None
    return (tokens, None) if tokens else _pick(table, "text", given, TEXT_NAMES)


def _guess_task(table: Table, options: ReadOptions) -> Task:
    if options.text_column or options.label_column:
        return "classification"
    if options.tokens_column or options.tags_column:
        return "tagging"
    # A text with one label each wins: token columns often ride along as rationales.
    if _find(table, TEXT_NAMES) and _find(table, LABEL_NAMES):
        return "classification"
    tags = _find(table, TAGS_NAMES)
    return "tagging" if _find(table, TOKENS_NAMES) and tags else "classification"


def _pick(
    table: Table, role: str, given: str | None, candidates: Iterable[str]
) -> tuple[str, str | None]:
    listed = ", ".join(repr(name) for name in table.columns) or "none"
    if given is not None:
        if given not in table.columns:
            nearest = difflib.get_close_matches(given, table.columns, n=1)
            hint = f" (did you mean {nearest[0]!r}?)" if nearest else ""
            raise DataError(
                f"{table.origin} has no column {given!r} for the {role}{hint}; the columns found "
                f"are {listed}."
            )
        return given, None
    found = _find(table, candidates)
    if found is None:
        raise DataError(
            f"{table.origin} has no column that looks like the {role}; the columns found are "
            f"{listed}, so name one with {role}_column=."
        )
    # The plain names need no comment; anything else was a guess.
    return found, None if found == role else f"column {found!r} taken as the {role}"


def _find(table: Table, candidates: Iterable[str]) -> str | None:
    by_lower = {name.lower(): name for name in reversed(table.columns)}
    return next((by_lower[name] for name in candidates if name in by_lower), None)
