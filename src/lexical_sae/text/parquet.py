"""Parquet files into tables, with the class names that the ``datasets`` package stores in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lexical_sae.text.errors import DataError
from lexical_sae.text.table import Table


def read_parquet(path: Path) -> Table:
    """The table in a parquet file."""
    pq = import_parquet(path)
    try:
        # ParquetFile, not read_table: the latter reads folders like label=1/ as a column.
        with pq.ParquetFile(path) as file:
            table = file.read()
        names: list[str] = table.column_names
    except Exception as error:  # a damaged file can fail anywhere in pyarrow, in any way
        raise damaged(path, error) from None
    check_column_names(path, names)
    columns = {name: _values(path, name, table.column(name)) for name in names}
    return Table(str(path), columns, class_names=stored_class_names(table.schema.metadata))


def import_parquet(path: Path) -> Any:
    """The module ``pyarrow.parquet``, or one sentence on how to get it."""
    try:
        import pyarrow.parquet as pq
    except ImportError:
        raise DataError(
            f"{path} is a parquet file and pyarrow is not installed; run "
            'pip install "lexical-sae[data]" or use a CSV file.'
        ) from None
    return pq


def damaged(path: Path, error: Exception) -> DataError:
    """What is said of a file that pyarrow cannot read."""
    return DataError(
        f"{path} cannot be read as parquet ({reason_of(error)}); write the file again or check "
        "that it was copied whole."
    )


def check_column_names(path: Path, names: list[str]) -> None:
    """Each name once."""
    for name in names:
        if names.count(name) > 1:
            raise DataError(f"{path} has the column {name!r} twice; rename one.")


def _values(path: Path, name: str, column: Any) -> list[Any]:
    try:
        values: list[Any] = column.to_pylist()
    except Exception:
        # Something in it is no Python value, such as bytes that are not UTF-8: find its row.
        for i, cell in enumerate(column):
            try:
                cell.as_py()
            except Exception as error:
                raise DataError(
                    f"{path}, row {i + 1}: the value in column {name!r} cannot be read "
                    f"({reason_of(error)}); correct it or leave the column out."
                ) from None
        raise DataError(f"{path}: the column {name!r} cannot be read; leave it out.") from None
    return values


def reason_of(error: Exception) -> str:
    """The first words of an error, for a pair of brackets."""
    said = " ".join(str(error).split())[:120]
    return said.rstrip(".") or type(error).__name__


def stored_class_names(metadata: dict[bytes, bytes] | None) -> dict[str, tuple[str, ...]]:
    """Class names of each column in the ``datasets`` metadata; none if it has another form."""
    try:
        features = json.loads((metadata or {})[b"huggingface"])["info"]["features"]
    except (KeyError, TypeError, ValueError, RecursionError):
        return {}
    found: dict[str, tuple[str, ...]] = {}
    for name, feature in features.items() if isinstance(features, dict) else ():
        inner = feature.get("feature", feature) if isinstance(feature, dict) else {}
        names = _class_label(inner)
        if names:
            found[name] = names
    return found


def _class_label(feature: object) -> tuple[str, ...]:
    if not isinstance(feature, dict) or feature.get("_type") != "ClassLabel":
        return ()
    names = feature.get("names")
    if not isinstance(names, list) or any(type(name) not in (str, int) for name in names):
        return ()
    return tuple(str(name) for name in names)
