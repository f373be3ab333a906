"""Files into tables: parquet, CSV, TSV and JSON Lines."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path
from typing import Any

from lexical_sae.text.errors import DataError
from lexical_sae.text.table import Table

JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")
SUFFIXES = (".parquet", ".csv", ".tsv", *JSON_SUFFIXES)


def read_table(path: Path, encoding: str | None = None) -> Table:
    """Read one file, by its ending; text files are UTF-8 unless ``encoding`` says otherwise."""
    if not path.is_file():
        raise DataError(f"{path} was not found; check the path.")
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise DataError(
            f"{path} ends in {path.suffix or 'nothing'!r}; the file must end in one of "
            f"{', '.join(SUFFIXES)}."
        )
    if suffix == ".parquet":
        table = _read_parquet(path)
    else:
        text = _decode(path, encoding)
        read = _read_json if suffix in JSON_SUFFIXES else _read_csv
        table = read(path, text)
    if not len(table):
        raise DataError(f"{path} is empty: no rows were found; at least one is needed.")
    return table


def _decode(path: Path, encoding: str | None) -> str:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}); check its rights.") from None
    try:
        # utf-8-sig also takes the byte order mark that spreadsheets write.
        return data.decode(encoding or "utf-8-sig")
    except LookupError:
        raise DataError(
            f"{path}: {encoding!r} is not an encoding Python knows; use a name such as 'utf-8', "
            "'latin-1' or 'cp1252'."
        ) from None
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        looks = "'utf-16'" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "'cp1252' or 'latin-1'"
        raise DataError(
            f"{path} is not {encoding or 'UTF-8'}: byte 0x{data[error.start]:02x} at offset "
            f"{error.start:,} (line {line}) cannot be read; save the file as UTF-8 or pass its "
            f"encoding, perhaps encoding={looks}."
        ) from None


def _read_csv(path: Path, text: str) -> Table:
    if path.suffix.lower() == ".csv":
        return _parse_delimited(path, text, ",", csv.QUOTE_MINIMAL)
    try:
        return _parse_delimited(path, text, "\t", csv.QUOTE_MINIMAL)
    except DataError as quoted:
        # Many TSV files (GLUE's among them) do not quote: there a quote mark is just a character.
        try:
            return _parse_delimited(path, text, "\t", csv.QUOTE_NONE)
        except DataError:
            raise quoted from None


def _parse_delimited(path: Path, text: str, delimiter: str, quoting: Any) -> Table:
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=delimiter, quoting=quoting, strict=True
    )
    header: list[str] = []
    rows: list[list[str]] = []
    lines: list[int] = []
    start = 1
    try:
        for fields in reader:
            if fields and not header:
                header = _check_header(path, fields)
            elif fields:
                if len(fields) != len(header):
                    raise DataError(
                        f"{path}, row {len(rows) + 1} (line {start}): {len(fields)} fields, but "
                        f"the header has {len(header)}; put a text that holds the delimiter in "
                        "double quotes."
                    )
                rows.append(fields)
                lines.append(start)
            start = reader.line_num + 1
    except csv.Error as error:
        raise DataError(
            f"{path}, row {len(rows) + 1} (line {start}): malformed row ({error}); put a text "
            'with quotes in double quotes and double the quotes inside it ("").'
        ) from None
    if not header:
        raise DataError(f"{path} is empty: a header line and at least one row are needed.")
    columns: dict[str, list[Any]] = {
        name: [row[i] for row in rows] for i, name in enumerate(header)
    }
    notes = ("read with quote marks taken as ordinary characters",) if quoting else ()
    return Table(str(path), columns, lines=lines, notes=notes)


def _check_header(path: Path, fields: list[str]) -> list[str]:
    # pandas writes its row index as a column without a name.
    names = [name.strip() or f"column_{i + 1}" for i, name in enumerate(fields)]
    for name in names:
        if names.count(name) > 1:
            raise DataError(f"{path}: the header names the column {name!r} twice; rename one.")
    return names


def _read_json(path: Path, text: str) -> Table:
    records: list[dict[str, Any]] = []
    lines: list[int] = []
    if path.suffix.lower() == ".json" and text.lstrip().startswith("["):
        whole = _parse_json(text, str(path))
        values = [(i + 1, value) for i, value in enumerate(whole)]
    else:
        # Not splitlines(): U+2028 and its like are legal inside a JSON string.
        values = [
            (number, _parse_json(line, f"{path}, row {number}"))
            for number, line in enumerate(text.split("\n"), start=1)
            if line.strip()
        ]
    for number, value in values:
        if not isinstance(value, dict):
            raise DataError(
                f"{path}, row {number}: found {_kind(value)}; each line must be one JSON object "
                'such as {"text": "...", "label": "..."}.'
            )
        records.append(value)
        lines.append(number)
    names = list(dict.fromkeys(name for record in records for name in record))
    columns = {name: [record.get(name) for record in records] for name in names}
    return Table(str(path), columns, rows=lines)


def _parse_json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise DataError(
            f"{where}: malformed JSON ({error.msg} at character {error.pos + 1}); each line must "
            "be one complete JSON object."
        ) from None


def _kind(value: object) -> str:
    return "null" if value is None else f"a {type(value).__name__}"


def _read_parquet(path: Path) -> Table:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise DataError(
            f"{path} is a parquet file and pyarrow is not installed; run "
            "pip install 'lexical-sae[data]' or save the file as CSV."
        ) from None
    try:
        # ParquetFile, not read_table: the latter reads folders like label=1/ as a column.
        with pq.ParquetFile(path) as file:
            table = file.read()
    except (pa.ArrowException, OSError) as error:
        reason = " ".join(str(error).split())[:120]
        raise DataError(
            f"{path} cannot be read as parquet ({reason}); write the file again or check that it "
            "was copied whole."
        ) from None
    columns = {name: table.column(name).to_pylist() for name in table.column_names}
    return Table(str(path), columns, class_names=_stored_class_names(table.schema.metadata))


def _stored_class_names(metadata: dict[bytes, bytes] | None) -> dict[str, tuple[str, ...]]:
    """Class names that the ``datasets`` package stores in the parquet files it writes."""
    try:
        features = json.loads((metadata or {})[b"huggingface"])["info"]["features"]
    except (KeyError, TypeError, ValueError):
        return {}
    found: dict[str, tuple[str, ...]] = {}
    for name, feature in features.items():
        inner = feature.get("feature", feature) if isinstance(feature, dict) else {}
        if isinstance(inner, dict) and inner.get("_type") == "ClassLabel" and inner.get("names"):
            found[name] = tuple(inner["names"])
    return found
