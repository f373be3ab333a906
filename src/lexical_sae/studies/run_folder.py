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
    if not written.is_file() or not _begun(folder):
        return
    if written.read_text(encoding="utf-8") != dump_config(config):
        raise ValueError(f"{folder} holds a run with other settings; change --output.")


def trained_run(config: RunConfig, folder: Path, data: Data, console: Console) -> dict[str, Any]:
    """What metrics.json holds, of a run trained now or before."""
    refuse_other_settings(config, folder)
    rows, metrics = folder / "trained_on.json", folder / "metrics.json"
    trained_on = {"rows": data_hash(data.train)}
    if _begun(folder) and (not rows.is_file() or json.loads(rows.read_text()) != trained_on):
        raise ValueError(f"{folder} holds a run on other texts; change --output.")
    if metrics.is_file():
        console.print(f"{folder} is trained already", style="dim", markup=False)
    else:
        folder.mkdir(parents=True, exist_ok=True)
        write_json(rows, trained_on)
        resume = last_checkpoint(folder / "checkpoints") is not None
        if "stopped" in train_run(config, folder, console=console, resume=resume, data=data):
            console.print("stopped; the same command goes on")
            raise SystemExit(STOPPED)
    found: dict[str, Any] = json.loads(metrics.read_text(encoding="utf-8"))
    return found


def _begun(folder: Path) -> bool:
    finished = (folder / "metrics.json").is_file()
    return finished or last_checkpoint(folder / "checkpoints") is not None
