"""The history of a run: a JSON line per log, readable while the run goes on and after any end."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from lexical_sae.text.write_rows import replacing
from lexical_sae.training.environment import plain_values

END = "train_runtime"  # only the log at the end of training has it


class HistoryCallback(TrainerCallback):
    """Appends every log of a run to the file at `path`: step, epoch, seconds, and what was logged.

    A resumed run takes up where its checkpoint was: later lines, which the run is about to write
    again, are cut off, and `seconds` goes on from the last line kept. A run from step 0 starts the
    file anew. Logs before the training begins (an evaluation, say) are no part of its history.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._start: float | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if not state.is_world_process_zero:
            return
        kept: list[dict[str, Any]] = []
        if state.global_step > 0 and self.path.exists():
            kept = _until(read_history(self.path), state.global_step)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(self.path) as scratch:
            scratch.write_text("".join(_line(record) for record in kept), encoding="utf-8")
        spent = max((record.get("seconds") or 0.0 for record in kept), default=0.0)
        self._start = time.monotonic() - spent

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        if self._start is None or not state.is_world_process_zero:
            return
        record = {
            "step": state.global_step,
            "epoch": state.epoch or 0.0,
            "seconds": round(time.monotonic() - self._start, 3),
        }
        # opened for each line: flushed at once, and no handle is left over after an interruption
        with self.path.open("a", encoding="utf-8") as file:
            file.write(_line({**record, **{k: v for k, v in (logs or {}).items() if k != "step"}}))


def _line(record: dict[str, Any]) -> str:
    return json.dumps(plain_values(record), allow_nan=False) + "\n"


def _until(history: Iterable[dict[str, Any]], step: int) -> list[dict[str, Any]]:
    """What had been logged when the checkpoint at `step` was saved: the end of a run that is
    trained further is no end."""
    kept = []
    for record in history:
        if record["step"] > step or END in record:
            break
        kept.append(record)
    return kept


def read_history(path: str | Path) -> list[dict[str, Any]]:
    """The records of a history. A broken last line, left by a kill in mid-write, is ignored; any
    other is a `ValueError`. A number that was NaN or infinite is None."""
    path = Path(path)
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    numbered = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    records: list[dict[str, Any]] = []
    for number, line in numbered:
        try:
            record = json.loads(line)
            if not isinstance(record, dict) or not isinstance(record.get("step"), int):
                raise ValueError("no record")
        except ValueError:
            if number == numbered[-1][0]:
                break
            raise ValueError(
                f"{path}, line {number}, is not a JSON record with a step; mend the line or remove "
                "the file."
            ) from None
        records.append(record)
    return records
