"""Training runs of a benchmark: each in a folder of its own, resumed if it was stopped, and never
repeated once it is finished."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rich.console import Console

from lexical_sae.training.checkpoints import last_checkpoint
from lexical_sae.training.config import RunConfig, dump_config
from lexical_sae.training.run import Data, train_run


def finished_run(
    config: RunConfig, where: Path, data: Data, console: Console, title: str
) -> dict[str, Any]:
    """The metrics of one run, trained now or before."""
    finished = where / "metrics.json"
    written = where / "config.yaml"
    if written.exists() and written.read_text() != dump_config(config):
        raise SystemExit(f"{where} holds a run with other settings; remove it or change --output")
    if not finished.exists():
        console.print(title, style="bold", markup=False)
        resume = last_checkpoint(where / "checkpoints") is not None
        if "stopped" in train_run(config, where, console=console, resume=resume, data=data):
            raise SystemExit("stopped; the same command goes on")
    result: dict[str, Any] = json.loads(finished.read_text())
    return result
