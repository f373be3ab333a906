"""A table into a dataset: choose columns, number the labels, check every row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from lexical_sae.text.columns import GUESS, Columns, ReadOptions, choose_columns
from lexical_sae.text.dataset import TextDataset, check_dataset
from lexical_sae.text.errors import DataError
from lexical_sae.text.labels import (
    LabelCodec,
    check_names,
    clean_labels,
    codec_from_names,
    codec_from_values,
    names_in_number_order,
    tag_codec,
)
from lexical_sae.text.table import Table, is_missing
from lexical_sae.text.tag_schemes import to_iob2
from lexical_sae.text.token_lists import read_tags, read_tokens

UNLABELLED = -1


@dataclass(frozen=True)
class Reading:
    """How to turn the tables of one dataset into splits that share their classes."""

    name: str
    source: str
    options: ReadOptions = GUESS
    lenient: bool = False
    """Drop rows without text or label, and say so, instead of refusing them."""
    alphabetical: bool = False
    """Order the classes by name: the sources of this dataset number them differently."""
    codec: LabelCodec | None = None
    """The classes, once a training split has fixed them."""

    @property
    def open_classes(self) -> bool:
        """Whether the classes still have to be learnt from the training split."""
        return self.codec is None and self.options.label_names is None


def convert(table: Table, split: str, reading: Reading) -> TextDataset:
    """The checked dataset in ``table``."""
    columns = choose_columns(table, reading.options)
    dataset, where, _ = _convert(table, columns, split, reading)
    check_dataset(dataset, training=split == "train", where=where.where)
    return dataset


def fix_classes(table: Table, reading: Reading) -> Reading:
    """``reading`` with the classes that the training table ``table`` fixes for all splits."""
    columns = choose_columns(table, reading.options)
    return replace(reading, codec=_convert(table, columns, "train", reading)[2])


def _convert(
    table: Table, columns: Columns, split: str, reading: Reading
) -> tuple[TextDataset, Table, LabelCodec]:
    if reading.lenient:
        table = _drop_unusable(table, columns)
    if columns.task == "classification":
        texts = _read_texts(table, columns.inputs)
        codec, ids, notes = _encode_labels(table, columns, reading)
        filled: dict[str, Any] = {"texts": texts, "labels": ids}
    else:
        tokens = read_tokens(table, columns.inputs)
        tags = read_tags(table, columns.targets)
        codec, tag_ids, notes = _encode_tags(table, columns, tags, reading)
        filled = {"tokens": tokens, "tags": tag_ids}
    used = {columns.inputs, columns.targets, columns.target_names}
    dataset = TextDataset(
        name=reading.name,
        split=split,
        task=columns.task,
        label_names=codec.names,
        source=reading.source,
        notes=(*table.notes, *columns.notes, *notes),
        extra={name: col for name, col in table.columns.items() if name not in used},
        **filled,
    )
    return dataset, table, codec


def _drop_unusable(table: Table, columns: Columns) -> Table:
    """Without the rows that have no label (-1 or nothing) or no text."""
    inputs, targets = table.columns[columns.inputs], table.columns[columns.targets]
    labelled = [
        i
        for i, value in enumerate(targets)
        if not is_missing(value) and (isinstance(value, bool) or value != UNLABELLED)
    ]
    usable = [i for i in labelled if not _is_blank(inputs[i])]
    notes = []
    if len(labelled) < len(table):
        notes.append(f"{len(table) - len(labelled):,} rows with label -1 or no label dropped")
    if len(usable) < len(labelled):
        notes.append(f"{len(labelled) - len(usable):,} rows without text dropped")
    if not usable:
        raise DataError(
            f"{table.origin}: none of the {len(table):,} rows has both a text and a label; this "
            "split cannot be used."
        )
    return table.keep(usable, *notes) if len(usable) < len(table) else table


def _is_blank(value: object) -> bool:
    if is_missing(value):
        return True
    return not value.strip() if isinstance(value, str) else value == []


def _read_texts(table: Table, column: str) -> list[str]:
    for i, value in enumerate(table.columns[column]):
        if is_missing(value):
            raise DataError(
                f"{table.where(i)}: the text (column {column!r}) is missing; fill it in or remove "
                "the row."
            )
        if not isinstance(value, str):
            raise DataError(
                f"{table.where(i)}: column {column!r} holds a {type(value).__name__}; the text "
                "must be a string."
            )
    return table.columns[column]


def _encode_labels(
    table: Table, columns: Columns, reading: Reading
) -> tuple[LabelCodec, list[int], tuple[str, ...]]:
    written = table.columns[columns.targets]
    values = clean_labels(written, table.where)
    stored = table.class_names.get(columns.targets)
    ordered: tuple[str, ...] | None = None
    if columns.target_names is not None:
        names = table.columns[columns.target_names]
        ordered = names_in_number_order(values, names, table.where)
        values = [str(name) for name in names]
    elif stored and all(type(v) is int and 0 <= v < len(stored) for v in values):
        ordered, values = stored, [stored[v] for v in values]
    notes: tuple[str, ...] = ()
    codec = reading.codec
    if codec is None and reading.options.label_names is not None:
        codec = codec_from_names(reading.options.label_names)
    elif codec is None and ordered is not None:
        if reading.alphabetical and ordered != (by_name := tuple(sorted(ordered, key=str.lower))):
            ordered = by_name
            notes = ("classes numbered by the alphabet, not as in the source",)
        check_names(ordered, f"{table.origin}: the column {columns.targets!r}")
        # Names only: numbers were already turned into the names they stand for.
        codec = LabelCodec(ordered, {name: i for i, name in enumerate(ordered)})
    elif codec is None:
        codec, notes = codec_from_values(values)
    if ordered is None:  # a name as it is written in the file comes before the number it looks like
        spelled = (v.strip() if isinstance(v, str) else v for v in written)
        values = [s if s in codec.ids else v for s, v in zip(spelled, values, strict=True)]
    ids = [codec.encode(value, table.where(i)) for i, value in enumerate(values)]
    return codec, ids, notes


def _encode_tags(
    table: Table, columns: Columns, rows: list[list[str | int]], reading: Reading
) -> tuple[LabelCodec, list[list[int]], tuple[str, ...]]:
    stored = table.class_names.get(columns.targets)
    if stored and all(type(t) is int and 0 <= t < len(stored) for tags in rows for t in tags):
        rows = [[stored[int(t)] for t in tags] for tags in rows]
    rows, scheme = _as_iob2(rows, reading.options.label_names)
    codec = reading.codec
    if codec is None and scheme is not None:
        codec = tag_codec(rows, table.where)
    elif codec is None:
        given = reading.options.label_names
        if given is None and stored:
            check_names(stored, f"{table.origin}: the column {columns.targets!r}")
        names = given or stored
        codec = codec_from_names(names) if names else tag_codec(rows, table.where)
    ids = [[codec.encode(tag, table.where(i)) for tag in tags] for i, tags in enumerate(rows)]
    notes = () if scheme is None else (f"tags converted from {scheme} to IOB2",)
    return codec, ids, notes


def _as_iob2(
    rows: list[list[str | int]], names: Sequence[str] | None
) -> tuple[list[list[str | int]], str | None]:
    """Tags that are texts, or numbers with names, in IOB2; and the scheme that they were in."""
    known = names or ()

    def named(tag: str | int) -> str | int:
        return known[tag] if type(tag) is int and 0 <= tag < len(known) else tag

    spelled = [[named(tag) for tag in tags] for tags in rows]
    if any(not isinstance(tag, str) for tags in spelled for tag in tags):
        return rows, None
    converted, scheme = to_iob2([[str(tag) for tag in tags] for tags in spelled])
    return (rows, None) if scheme is None else ([list(tags) for tags in converted], scheme)
