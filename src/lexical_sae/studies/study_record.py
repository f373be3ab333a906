"""What holds for all of a study, kept in its folder: neither another kind of study nor cells of
other rows are mixed in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lexical_sae.studies.cell_data import Rows
from lexical_sae.studies.cells import Cell
from lexical_sae.studies.run_folder import begun
from lexical_sae.training.environment import write_json

RECORD = "study.json"
FORMAT = 1


def check_folder(folder: Path, kind: str) -> None:
    """Refuse a folder that cannot be, or that holds a study of another kind."""
    taken = next((one for one in (folder, *folder.parents) if one.is_file()), None)
    if taken is not None:
        raise ValueError(f"{taken} is a file; expected a folder: change --output.")
    before = (_read(folder) or {}).get("study") or _kind_of_results(folder)
    if before not in (None, kind) and _holds_any(folder):
        raise ValueError(
            f"{folder} holds a study of kind {before}, and now it is {kind}; change --output, or "
            "remove the folder."
        )


@contextmanager
def kind_kept(folder: Path, kind: str) -> Iterator[None]:
    """Keep the kind of study in its folder while it runs, so that one that was stopped has it too;
    one that got nowhere leaves no folder."""
    new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / RECORD, {**(_read(folder) or {"format": FORMAT}), "study": kind})
    try:
        yield
    finally:
        if new and [one.name for one in folder.iterdir()] == [RECORD]:
            (folder / RECORD).unlink()
            folder.rmdir()


def begin_study(folder: Path, rows: Rows) -> None:
    """Refuse other training rows before anything is trained. A study that got nowhere has nothing
    to lose."""
    known = _read(folder) or {"format": FORMAT}
    if "train_rows" not in known or not _any_begun(folder / "cells"):
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / RECORD, {**known, "train_rows": rows.train, "trained_on": {}})
    elif known["train_rows"] != rows.train:
        raise ValueError(
            f"{folder} holds a study with train_rows: {_shown(known['train_rows'])}, and now it is "
            f"{_shown(rows.train)}; change --output, or remove the folder."
        )


def same_training_rows(folder: Path, cell: Cell, found: str) -> None:
    """Refuse to add runs to a dataset whose training texts have changed since its first run;
    `found` is the hash of those of now."""
    known = _read(folder)
    assert known is not None
    before = known["trained_on"].get(cell.dataset, found)
    if before != found and _any_begun(folder.joinpath(*cell.path.parts[:2])):
        raise ValueError(
            f"The training texts of {cell.dataset} are not those that this study began with; "
            "change --output."
        )
    known["trained_on"][cell.dataset] = found
    write_json(folder / RECORD, known)


def _kind_of_results(folder: Path) -> str | None:
    """Folders of earlier versions have it there alone."""
    found = _json(folder / "results.json").get("study")
    return found if isinstance(found, str) else None


def _holds_any(folder: Path) -> bool:
    return (folder / "results.json").is_file() or _any_begun(folder)


def _any_begun(cells: Path) -> bool:
    return any(begun(one.parent) for one in cells.glob("**/config.yaml"))


def _read(folder: Path) -> dict[str, Any] | None:
    found = _json(folder / RECORD)
    return found if found.get("format") == FORMAT else None


def _json(file: Path) -> dict[str, Any]:
    """What the file holds; nothing if it is not there or holds no mapping."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _shown(rows: int | None) -> str:
    return "null (all)" if rows is None else str(rows)
