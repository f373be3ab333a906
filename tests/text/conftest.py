"""Shared ground: files and wheels written on the spot."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest

Columns = dict[str, list[Any]]


def write_columns(path: Path, columns: Columns) -> Path:
    """Write ``columns`` in the format that the ending of ``path`` names."""
    rows = [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]
    if path.suffix == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table(columns), path)
    elif path.suffix in (".csv", ".tsv"):
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(
                file, list(columns), delimiter="," if path.suffix == ".csv" else "\t"
            )
            writer.writeheader()
            for row in rows:
                writer.writerow(
                    {k: json.dumps(v) if isinstance(v, list) else v for k, v in row.items()}
                )
    else:
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        path.write_text(lines, encoding="utf-8", newline="")
    return path


def make_wheel(
    folder: Path, members: dict[str, bytes], name: str = "tiny_data"
) -> tuple[Path, str]:
    """A little wheel and its sha256."""
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for member, content in members.items():
            archive.writestr(member, content)
    return wheel, hashlib.sha256(wheel.read_bytes()).hexdigest()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of its own."""
    monkeypatch.setenv("LEXICAL_SAE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def no_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any attempt to run pip fails the test."""

    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError(f"the network was asked: {args}")

    monkeypatch.setattr("lexical_sae.text.wheels.subprocess.run", refuse)


@pytest.fixture
def local_data() -> Path:
    """The folder of real datasets, which is not part of the repository."""
    folder = os.environ.get("LEXICAL_SAE_DATA")
    if not folder:
        pytest.skip("LEXICAL_SAE_DATA is not set")
    return Path(folder)


@pytest.fixture
def no_local_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine without local datasets."""
    monkeypatch.delenv("LEXICAL_SAE_DATA", raising=False)
