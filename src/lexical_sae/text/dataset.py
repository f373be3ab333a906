"""One shape for labelled text, wherever it comes from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar, get_args

from lexical_sae.text.encodable import check_encodable
from lexical_sae.text.errors import DataError
from lexical_sae.text.iob import find_violation

Task = Literal["classification", "tagging"]
T = TypeVar("T")


@dataclass(frozen=True)
class TextDataset:
    """Texts with a class each, or token lists with a tag per token.

    ``texts`` and ``labels`` are filled for classification, ``tokens`` and ``tags`` for tagging;
    labels and tags are positions in ``label_names``.
    """

    name: str
    split: str
    task: Task
    label_names: tuple[str, ...]
    texts: list[str] = field(default_factory=list)
    labels: list[int] = field(default_factory=list)
    tokens: list[list[str]] = field(default_factory=list)
    tags: list[list[int]] = field(default_factory=list)
    source: str = ""
    """Where it came from, as a sentence."""
    notes: tuple[str, ...] = ()
    """What was guessed, dropped, converted or cut."""
    extra: Mapping[str, list[Any]] = field(default_factory=dict)
    """The other columns, row by row."""

    def __len__(self) -> int:
        return len(self.texts) if self.task == "classification" else len(self.tokens)

    def select(self, indices: Iterable[int]) -> TextDataset:
        """The rows at ``indices``, in that order."""
        rows = list(indices)
        return replace(
            self,
            texts=_pick(self.texts, rows),
            labels=_pick(self.labels, rows),
            tokens=_pick(self.tokens, rows),
            tags=_pick(self.tags, rows),
            extra={name: _pick(column, rows) for name, column in self.extra.items()},
        )

    def head(self, n: int) -> TextDataset:
        """The first ``n`` rows, or all of them if there are fewer."""
        return self.select(range(min(n, len(self))))

    def label_counts(self) -> dict[str, int]:
        """How many rows (tagging: tokens) carry each label name, zeros included."""
        if self.task == "classification":
            counts = Counter(self.labels)
        else:
            counts = Counter(tag for tags in self.tags for tag in tags)
        return {name: counts[i] for i, name in enumerate(self.label_names)}

    def with_notes(self, *notes: str) -> TextDataset:
        """The same rows with ``notes`` added."""
        return replace(self, notes=(*self.notes, *notes))


def _pick(column: list[T], rows: Sequence[int]) -> list[T]:
    return [column[i] for i in rows] if column else []


def check_task(task: object) -> None:
    """Refuse anything but the two tasks there are."""
    if task not in get_args(Task):
        raise DataError(f"task is {task!r}; it must be 'classification' or 'tagging'.")


def check_dataset(
    dataset: TextDataset,
    *,
    training: bool = False,
    where: Callable[[int], str] | None = None,
) -> None:
    """Raise :class:`DataError` at the first row that cannot be used.

    ``where`` names a row for the message (file and row); ``training`` also asks for two classes.
    """
    title = f"{dataset.name} ({', '.join(filter(None, (dataset.split, dataset.source)))})"
    check_task(dataset.task)
    name_row = where or (lambda i: f"{title}, row {i + 1}")
    if not len(dataset):
        raise DataError(f"{title} has no rows; at least one is needed.")
    for name, column in dataset.extra.items():
        if len(column) != len(dataset):
            raise DataError(
                f"{title}: the column {name!r} has {len(column):,} values for {len(dataset):,} "
                "rows; give one value per row."
            )
    if dataset.task == "classification":
        _check_texts(dataset, title, name_row)
    else:
        _check_sentences(dataset, title, name_row)
    if training and dataset.task == "classification" and len(set(dataset.labels)) < 2:
        only = dataset.label_names[dataset.labels[0]]
        raise DataError(
            f"{title}: all {len(dataset):,} rows have the one class {only!r}; training needs at "
            "least two classes, so add rows of another class or check the label column."
        )


def _check_texts(dataset: TextDataset, title: str, where: Callable[[int], str]) -> None:
    if len(dataset.labels) != len(dataset.texts):
        raise DataError(
            f"{title} has {len(dataset.texts):,} texts and {len(dataset.labels):,} labels; "
            "give one label per text."
        )
    for i, (text, label) in enumerate(zip(dataset.texts, dataset.labels, strict=True)):
        if not text.strip():
            raise DataError(f"{where(i)}: the text is empty; remove the row or fill the text in.")
        check_encodable(text, where(i))
        if not 0 <= label < len(dataset.label_names):
            raise DataError(
                f"{where(i)}: label {label} is not a position in the {len(dataset.label_names)} "
                "label names; use 0 up to one less than their number."
            )


def _check_sentences(dataset: TextDataset, title: str, where: Callable[[int], str]) -> None:
    if len(dataset.tags) != len(dataset.tokens):
        raise DataError(
            f"{title} has {len(dataset.tokens):,} token lists and {len(dataset.tags):,} tag lists; "
            "give one tag list per token list."
        )
    names = dataset.label_names
    for i, (tokens, tags) in enumerate(zip(dataset.tokens, dataset.tags, strict=True)):
        if not tokens:
            raise DataError(f"{where(i)}: the sentence has no tokens; remove the row.")
        if len(tokens) != len(tags):
            raise DataError(
                f"{where(i)}: {len(tokens)} tokens but {len(tags)} tags; give one tag per token."
            )
        for j, (token, tag) in enumerate(zip(tokens, tags, strict=True)):
            if not token.strip():
                raise DataError(f"{where(i)}: token {j + 1} is empty; remove it and its tag.")
            check_encodable(token, where(i), f"token {j + 1}")
            if not 0 <= tag < len(names):
                raise DataError(
                    f"{where(i)}: tag {tag} of token {j + 1} ({token!r}) is not a position in the "
                    f"{len(names)} tag names; use 0 up to one less than their number."
                )
        violation = find_violation([names[tag] for tag in tags])
        if violation is not None:
            j = violation.token
            raise DataError(
                f"{where(i)}: the tags are not IOB2 at token {j + 1} ({tokens[j]!r}): "
                f"{violation.reason}; convert the tags to IOB2."
            )
