"""A training run in a folder of its own: resumed if stopped, never repeated once finished."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rich.console import Console

from lexical_sae.evaluation.suite import data_hash
from lexical_sae.training.checkpoints import last_checkpoint
from lexical_sae.training.config import RunConfig, dump_config
from lexical_sae.training.environment import write_json
from lexical_sae.training.run import Data, train_run

STOPPED = 130  # exit code of a study that a signal stopped


def refuse_other_settings(config: RunConfig, folder: Path) -> None:
    """A run that got nowhere has nothing to lose, and may be started with other settings."""
    written = folder / "config.yaml"
    if not written.is_file() or not begun(folder):
        return
    if written.read_text(encoding="utf-8") != dump_config(config):
        raise ValueError(f"{folder} holds a run with other settings; change --output.")


def is_trained(config: RunConfig, folder: Path) -> bool:
    """Whether the folder holds a finished run with these settings."""
    written = folder / "config.yaml"
    if not (folder / "metrics.json").is_file() or not written.is_file():
        return False
    return written.read_text(encoding="utf-8") == dump_config(config)


def trained_run(config: RunConfig, folder: Path, data: Data, console: Console) -> dict[str, Any]:
    """What metrics.json holds, of a run trained now or before. If its held-out rows are others now
    it is measured anew: numbers of two sets of rows never stand beside each other."""
    refuse_other_settings(config, folder)
    record, metrics = folder / "trained_on.json", folder / "metrics.json"
    rows = split_hashes(data)
    before = _rows_before(record) if begun(folder) else rows
    if before.get("train") != rows["train"]:
        raise ValueError(f"{folder} holds a run on other texts; change --output.")
    chosen = config.settings.early_stopping is not None
    if chosen and before.get("validation", rows["validation"]) != rows["validation"]:
        raise ValueError(
            f"{folder} holds a run that other validation rows could stop; change --output."
        )
    if not metrics.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        write_json(record, rows)
        resume = last_checkpoint(folder / "checkpoints") is not None
        if "stopped" in train_run(config, folder, console=console, resume=resume, data=data):
            console.print("stopped; the same command goes on")
            raise SystemExit(STOPPED)
        return _read(metrics)
    console.print(f"{folder} is trained already", style="dim", markup=False)
    if before != rows:
        from lexical_sae.studies.measured_anew import measured_anew

        console.print("its held-out rows are others now: measured anew", style="dim")
        write_json(metrics, measured_anew(config, folder, data, _read(metrics)))
        write_json(record, rows)
    return _read(metrics)


def split_hashes(data: Data) -> dict[str, str | None]:
    """Of every split that a run uses."""
    splits = {"train": data.train, "validation": data.validation, "test": data.test}
    return {name: None if split is None else data_hash(split) for name, split in splits.items()}


def _rows_before(record: Path) -> dict[str, str | None]:
    """Earlier versions kept the training rows only; of the others nothing is known then."""
    if not record.is_file():
        return {}
    found = _read(record)
    return {"train": found["rows"]} if "rows" in found else found


def _read(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def begun(folder: Path) -> bool:
    finished = (folder / "metrics.json").is_file()
    return finished or last_checkpoint(folder / "checkpoints") is not None
