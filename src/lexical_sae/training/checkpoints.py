"""Which checkpoint a run goes on from: the newest that was written to the end."""

from __future__ import annotations

import json
from pathlib import Path

# in the order in which they are written; the last one is missing if a save was cut short
FILES = ("model.safetensors", "optimizer.pt", "objective.json", "trainer_state.json")


def last_checkpoint(folder: Path) -> Path | None:
    found = [path for path in folder.glob("checkpoint-*") if path.name[11:].isdigit()]
    for path in sorted(found, key=lambda path: -int(path.name[11:])):
        if _complete(path):
            return path
    return None


def _complete(path: Path) -> bool:
    if not all((path / name).is_file() for name in FILES):
        return False
    try:
        json.loads((path / "trainer_state.json").read_text())
        json.loads((path / "objective.json").read_text())
    except ValueError:
        return False
    return True
