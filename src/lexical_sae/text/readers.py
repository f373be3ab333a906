"""Files into tables, by their ending; JSON and JSON Lines are read here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lexical_sae.text.delimited import read_delimited
from lexical_sae.text.errors import DataError
from lexical_sae.text.parquet import read_parquet
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
        table = read_parquet(path)
    else:
        text = _decode(path, encoding)
        read = _read_json if suffix in JSON_SUFFIXES else read_delimited
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
    except (LookupError, UnicodeError, ValueError) as error:
        if isinstance(error, UnicodeDecodeError):
            raise _undecodable(path, data, encoding, error) from None
        raise DataError(
            f"{path}: {encoding!r} is not an encoding Python knows; use a name such as 'utf-8', "
            "'latin-1' or 'cp1252'."
        ) from None


def _undecodable(
    path: Path, data: bytes, encoding: str | None, error: UnicodeDecodeError
) -> DataError:
    line = data.count(b"\n", 0, error.start) + 1
    looks = "'utf-16'" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "'cp1252' or 'latin-1'"
    return DataError(
        f"{path} is not {encoding or 'UTF-8'}: byte 0x{data[error.start]:02x} at offset "
        f"{error.start:,} (line {line}) cannot be read; save the file as UTF-8 or pass its "
        f"encoding, perhaps encoding={looks}."
    )


def _read_json(path: Path, text: str) -> Table:
    records: list[dict[str, Any]] = []
    lines: list[int] = []
    if path.suffix.lower() == ".json" and text.lstrip().startswith("["):
        whole = parse_json(text, str(path))
        values = [(i + 1, value) for i, value in enumerate(whole)]
    else:
        # Not splitlines(): U+2028 and its like are legal inside a JSON string.
        values = [
            (number, parse_json(line, f"{path}, row {number}"))
            for number, line in enumerate(text.split("\n"), start=1)
            if line.strip()
        ]
    for number, value in values:
        if not isinstance(value, dict):
            raise DataError(
                f"{path}, row {number}: found {kind_of(value)}; each line must be one JSON object "
                'such as {"text": "...", "label": "..."}.'
            )
        records.append(value)
        lines.append(number)
    names = list(dict.fromkeys(name for record in records for name in record))
    columns = {name: [record.get(name) for record in records] for name in names}
    return Table(str(path), columns, rows=lines)


def parse_json(text: str, where: str) -> Any:
    """The value in ``text``; an error begins with ``where``."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise DataError(
            f"{where}: malformed JSON ({error.msg} at character {error.pos + 1}); each line must "
            "be one complete JSON object."
        ) from None
    except RecursionError:
        raise DataError(
            f"{where}: lists or objects are nested too deeply to be read; flatten them or leave "
            "them out."
        ) from None
    except ValueError:  # Python's limit on the digits of a whole number
        raise DataError(
            f"{where}: a number has too many digits to be read; shorten it or put it in quotes."
        ) from None


def kind_of(value: object) -> str:
    return "null" if value is None else f"a {type(value).__name__}"
