"""Rows into a file, by its ending; the file appears whole or not at all."""

from __future__ import annotations

import base64
import contextlib
import csv
import json
import math
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from lexical_sae.text.errors import DataError
from lexical_sae.text.parquet import import_parquet, reason_of

DELIMITERS = {".csv": ",", ".tsv": "\t"}
OUTPUT_SUFFIXES = (*DELIMITERS, ".jsonl", ".ndjson", ".parquet")
PARQUET_ROWS = 4096
"""Rows in one group of a parquet file."""


class RowWriter(Protocol):
    """A file that is being written; leaving the block closes it."""

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None: ...

    def __enter__(self) -> RowWriter: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


@contextlib.contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A new name beside ``target``, moved onto it at the end; after an error it is gone."""
    scratch = target.with_name(f".writing-{uuid.uuid4().hex[:12]}")
    try:
        yield scratch
        os.replace(scratch, target)
    finally:
        scratch.unlink(missing_ok=True)


def open_writer(path: Path, suffix: str, columns: Sequence[str], schema: Any = None) -> RowWriter:
    """A writer of the format that ``suffix`` names; ``schema`` is for parquet."""
    if suffix in DELIMITERS:
        return _Delimited(path, columns, DELIMITERS[suffix])
    return _Parquet(path, schema) if suffix == ".parquet" else _JsonLines(path)


def as_json(value: Any) -> str:
    """JSON that every reader takes: no NaN, and text for what JSON has no form for."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, default=_as_text)
    except ValueError:
        return json.dumps(_without_nan(value), ensure_ascii=False, default=_as_text)


def _as_text(value: Any) -> str:
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode()
    return str(value.isoformat()) if hasattr(value, "isoformat") else str(value)


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


class _TextFile:
    def __init__(self, path: Path) -> None:
        self.file = path.open("x", encoding="utf-8", newline="")

    def __exit__(self, *error: object) -> None:
        self.file.close()


class _JsonLines(_TextFile):
    def __enter__(self) -> _JsonLines:
        return self

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self.file.writelines(as_json(row) + "\n" for row in rows)


class _Delimited(_TextFile):
    def __init__(self, path: Path, columns: Sequence[str], delimiter: str) -> None:
        super().__init__(path)
        self.columns = columns
        self.plain: Any = csv.writer(self.file, delimiter=delimiter, lineterminator="\n")
        self.quoted: Any = csv.writer(
            self.file, delimiter=delimiter, lineterminator="\n", quoting=csv.QUOTE_ALL
        )
        self._write(list(columns))

    def __enter__(self) -> _Delimited:
        return self

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None:
        for row in rows:
            self._write([_cell(row.get(name)) for name in self.columns])

    def _write(self, cells: list[str]) -> None:
        # Before Python 3.13 the csv module does not quote a lone \r, at which readers end the row.
        lone = any("\r" in cell for cell in cells)
        (self.quoted if lone else self.plain).writerow(cells)


def _cell(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, float):
        return repr(value)
    return as_json(value) if isinstance(value, (bool, int, dict, list, tuple)) else _as_text(value)


class _Parquet:
    def __init__(self, path: Path, schema: Any) -> None:
        self.schema = schema
        self.waiting: list[Mapping[str, Any]] = []
        self.writer = import_parquet(path).ParquetWriter(path, schema)

    def __enter__(self) -> _Parquet:
        return self

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self.waiting += rows
        if len(self.waiting) >= PARQUET_ROWS:
            self._flush()

    def _flush(self) -> None:
        import pyarrow as pa

        arrays = []
        for field in self.schema:
            try:
                values = [_fit(row.get(field.name), field.type) for row in self.waiting]
                arrays.append(pa.array(values, type=field.type))
            except (pa.ArrowException, TypeError, OverflowError) as error:
                raise DataError(
                    f"the column {field.name!r} cannot be written as parquet ({reason_of(error)});"
                    " write a .jsonl file instead, or leave the column out."
                ) from None
        self.writer.write_table(pa.Table.from_arrays(arrays, schema=self.schema))
        self.waiting = []

    def __exit__(self, kind: object, *error: object) -> None:
        try:
            if kind is None and self.waiting:
                self._flush()
        finally:
            self.writer.close()


def _fit(value: Any, wanted: Any) -> Any:
    import pyarrow as pa

    if value is None or not (pa.types.is_string(wanted) or pa.types.is_floating(wanted)):
        return value
    if pa.types.is_floating(wanted):
        return float(value)
    return value if isinstance(value, str) else as_json(value)


_ARROW_TYPES = {"bool": "bool_", "int": "int64", "float": "float64"}


def parquet_schema(
    columns: Sequence[str], kinds: Mapping[str, str], source: Any, added: Mapping[str, Any]
) -> Any:
    """The schema of the input (or one made from ``kinds``; the rest is text) and ``added``.

    A column of values of several kinds, of lists or of objects becomes JSON text.
    """
    import pyarrow as pa

    if source is None:
        fields = [
            pa.field(name, getattr(pa, _ARROW_TYPES.get(kinds.get(name, "str"), "string"))())
            for name in columns
        ]
    else:
        fields = [source.field(name) for name in columns]
    return pa.schema([*fields, *(pa.field(name, kind) for name, kind in added.items())])
