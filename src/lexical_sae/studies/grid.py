"""The grid: every cell trained and measured once, in a folder of its own.

A finished cell is not repeated, a stopped one goes on, a failed one is told and tried again the
next time, while the others go on.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from rich.console import Console

from lexical_sae.evaluation.held_out import same_labels
from lexical_sae.model.dense_twin import DenseTwin
from lexical_sae.model.lexical_sae import LexicalSAE
from lexical_sae.studies.cell_data import Rows, load_cell_data
from lexical_sae.studies.cells import Cell
from lexical_sae.studies.run_folder import (
    STOPPED,
    is_trained,
    refuse_other_settings,
    split_hashes,
    trained_run,
)
from lexical_sae.studies.study_record import begin_study, same_training_rows
from lexical_sae.text.dataset import TextDataset
from lexical_sae.training.config import RunConfig
from lexical_sae.training.environment import plain_values, write_json
from lexical_sae.training.run import Data

FORMAT = 1  # of result.json
RESULT = "result.json"
AGAIN = "again"  # of what a measurement found: why it is to be taken again the next time


@dataclass(frozen=True, eq=False)
class TrainedCell:
    """A cell that has been trained, as a measurement sees it."""

    cell: Cell
    config: RunConfig
    folder: Path
    data: Data
    metrics: dict[str, Any]
    console: Console

    @cached_property
    def model(self) -> LexicalSAE:
        """Of an arm that is no dense twin."""
        return LexicalSAE.from_pretrained(self.folder / "model")

    @cached_property
    def twin(self) -> DenseTwin:
        return DenseTwin.from_pretrained(self.folder / "model")

    @property
    def labels(self) -> list[str]:
        return list(self.metrics["labels"])

    @cached_property
    def test(self) -> TextDataset:
        """The rows to measure on, with labels counted as the model counts them."""
        assert self.data.test is not None
        return same_labels(self.data.test, self.labels)

    @cached_property
    def train(self) -> TextDataset:
        return same_labels(self.data.train, self.labels)


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a measurement found of a cell, or why the cell failed."""

    cell: Cell
    found: dict[str, Any]
    failed: str = ""

    def to_dict(self) -> dict[str, Any]:
        cell = self.cell
        named = {"dataset": cell.dataset, "backbone": cell.backbone, "arm": cell.arm}
        return {**named, "seed": cell.seed, "failed": self.failed, **self.found}


Measure = Callable[[TrainedCell], dict[str, Any]]
Check = Callable[[RunConfig, Data], None]
Loaded = dict[str, tuple[Data, dict[str, str | None]]]


def run_grid(
    cells: Sequence[Cell],
    folder: Path,
    console: Console,
    measure: Measure,
    *,
    rows: Rows,
    options: Mapping[str, Any] | None = None,
    check: Check | None = None,
) -> list[Outcome]:
    """Every cell's outcome. `options` are what a measurement depends on besides the cell: with
    others it is taken again, on the run as it was trained. `check` raises where the study cannot
    measure such data: before the hours of training, not after."""
    for cell in cells:  # before anything is trained
        config = _config(cell)
        if config is not None:
            refuse_other_settings(config, folder / cell.path)
    begin_study(folder, rows)
    measured = plain_values({**asdict(rows), **(options or {})})
    loaded: Loaded = {}
    outcomes = []
    for place, cell in enumerate(cells, 1):
        console.print(f"[{place}/{len(cells)}] {cell.title}", style="bold", markup=False)
        outcome = _tried(cell, folder, console, measure, rows, measured, loaded, check)
        if outcome.failed:
            console.print(f"failed: {outcome.failed}", style="red", markup=False)
        outcomes.append(outcome)
    return outcomes


def finished(cell: Cell, folder: Path) -> bool:
    """Whether the cell has been trained and measured with these settings, in a study's folder."""
    config, where = _config(cell), folder / cell.path
    return config is not None and (where / RESULT).is_file() and is_trained(config, where)


def _config(cell: Cell) -> RunConfig | None:
    try:
        return cell.config()
    except ValueError:
        return None  # told as the cell's failure, when its turn comes


def _kept(cell: Cell, folder: Path, measured: Mapping[str, Any]) -> Outcome | None:
    if not finished(cell, folder):
        return None
    try:
        found = json.loads((folder / cell.path / RESULT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if found.get("format") != FORMAT or found.get("measured") != measured:
        return None
    return Outcome(cell, found["found"])


def _tried(
    cell: Cell,
    folder: Path,
    console: Console,
    measure: Measure,
    rows: Rows,
    measured: Mapping[str, Any],
    loaded: Loaded,
    check: Check | None,
) -> Outcome:
    """A grid runs for hours unattended, so whatever a cell raises is its own failure."""
    where = folder / cell.path
    try:
        config = cell.config()
        data, hashes = _data(config, rows, loaded, console)
        if check is not None:
            check(config, data)
        measured = {**measured, "data": hashes}
        kept = _kept(cell, folder, measured)
        if kept is not None:
            console.print("finished before", style="dim")
            return kept
        same_training_rows(folder, cell, str(hashes["train"]))
        metrics = trained_run(config, where, data, console)
        # what is measured now is written over what the old result was made from
        (where / RESULT).unlink(missing_ok=True)
        found = plain_values(measure(TrainedCell(cell, config, where, data, metrics, console)))
    except KeyboardInterrupt:
        console.print("stopped; the same command goes on")
        raise SystemExit(STOPPED) from None
    except Exception as error:
        if not isinstance(error, ValueError):
            where.mkdir(parents=True, exist_ok=True)
            (where / "error.txt").write_text(traceback.format_exc(), encoding="utf-8")
        return Outcome(cell, {}, reason(error))
    (where / "error.txt").unlink(missing_ok=True)
    if AGAIN in found:
        console.print(f"to be measured again: {found[AGAIN]}", style="dim", markup=False)
    else:
        write_json(where / RESULT, {"format": FORMAT, "measured": measured, "found": found})
    return Outcome(cell, found)


def _data(
    config: RunConfig, rows: Rows, loaded: Loaded, console: Console
) -> tuple[Data, dict[str, str | None]]:
    """The rows and their hashes. Cells of the same dataset follow each other, so the last one read
    is kept, and its notes are told once."""
    wanted = config.model_dump(exclude={"settings", "backbone", "recipe", "dense_twin"})
    key = json.dumps(wanted, sort_keys=True)
    if key not in loaded:
        loaded.clear()
        found = load_cell_data(config, rows)
        for note in found.train.notes:
            console.print(f"note: {note}", style="dim", markup=False)
        data = replace(found, train=replace(found.train, notes=()))
        loaded[key] = data, split_hashes(data)
    return loaded[key]


def reason(error: Exception) -> str:
    """Why a cell failed, on one line."""
    text = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, MemoryError) or "out of memory" in text or "allocate memory" in text:
        return f"out of memory; expected a smaller batch_size or max_length ({text[:120]})"
    if isinstance(error, (ValueError, OSError, ImportError)):
        return text
    return f"{type(error).__name__}: {text[:300]} (error.txt in the cell's folder tells more)"
