"""What holds for every run of a grid, kept in its folder: cells of other rows are not mixed in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lexical_sae.studies.cell_data import Rows
from lexical_sae.studies.cells import Cell
from lexical_sae.studies.run_folder import begun
from lexical_sae.training.environment import write_json

RECORD = "study.json"
FORMAT = 1


def begin_study(folder: Path, rows: Rows) -> None:
    """Refuse other training rows before anything is trained. A study that got nowhere has nothing
    to lose."""
    known = _read(folder)
    if known is None or not _any_begun(folder / "cells"):
        folder.mkdir(parents=True, exist_ok=True)
        new: dict[str, Any] = {"format": FORMAT, "train_rows": rows.train, "trained_on": {}}
        write_json(folder / RECORD, new)
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


def _any_begun(cells: Path) -> bool:
    return any(begun(one.parent) for one in cells.glob("**/config.yaml"))


def _read(folder: Path) -> dict[str, Any] | None:
    try:
        found = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return dict(found) if found.get("format") == FORMAT else None


def _shown(rows: int | None) -> str:
    return "null (all)" if rows is None else str(rows)
