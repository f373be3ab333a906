"""What senses do to the task: the same run with them and without, row by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from lexical_sae.report.finding import Finding, FindingTable
from lexical_sae.studies.arms_figure import arms_figures
from lexical_sae.studies.arms_table import NOTE, arms_of, arms_table, difference, in_words
from lexical_sae.studies.cell_data import Rows, load_cell_data
from lexical_sae.studies.cell_measures import KEPT, rows_right
from lexical_sae.studies.cells import Cell
from lexical_sae.studies.grid import Outcome, TrainedCell
from lexical_sae.studies.run_folder import trained_run
from lexical_sae.studies.wic_config import WITH, WITHOUT, WicConfig, wic_cells


def task_outcomes(config: WicConfig, folder: Path, console: Console) -> list[Outcome]:
    """Of every run its test measures and which rows it got right. What is trained is kept, and is
    read again for its rows: metrics.json holds only their mean."""
    return [_trained(cell, config, folder, console) for cell in wic_cells(config)]


def _trained(cell: Cell, config: WicConfig, folder: Path, console: Console) -> Outcome:
    run = cell.config()
    data = load_cell_data(run, Rows(config.train_rows))
    assert data.test is not None
    where = folder / cell.path
    metrics = trained_run(run, where, data, console)
    test, seconds = metrics["test"], metrics["seconds"]
    found = {
        **{name: test[name] for name in KEPT if name in test},
        **{"seconds": seconds["training"], "split": data.test.split, "metrics": metrics},
        **rows_right(TrainedCell(cell, run, where, data, metrics, console)),
    }
    return Outcome(cell, found)


def task_finding(outcomes: Sequence[Outcome]) -> Finding:
    arms = arms_of(outcomes)
    table = arms_table("With senses and without", arms, WITHOUT, heading="run")
    return Finding(
        tables=(table, _every_run(outcomes)), dots=arms_figures("The task", arms), notes=(NOTE,)
    )


def task_line(outcomes: Sequence[Outcome]) -> str:
    without, having = arms_of(outcomes)
    shown = [100 * (arm.accuracy().value or 0.0) for arm in (having, without)]
    apart, seeds = difference(having, without), len(having.finished)
    return (
        f"On the task accuracy is {shown[0]:.2f} % with senses and {shown[1]:.2f} % without"
        f"{'' if apart is None else f': {in_words(apart)}'}; the mean of {seeds} "
        f"seed{'s' * (seeds > 1)}."
    )


def task_record(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """What results.json holds of them, and the difference of the runs with senses from those
    without."""
    rows = ("right", "tags_right", "tags")
    runs = [
        {
            **{"seed": one.cell.seed, "senses": one.cell.arm == WITH, "split": one.found["split"]},
            **{name: one.found["metrics"][name] for name in ("test", "seconds")},
            **{name: one.found[name] for name in rows if name in one.found},
        }
        for one in outcomes
    ]
    if not outcomes:
        return {"task": [], "task_difference": None}
    without, having = arms_of(outcomes)
    apart = difference(having, without)
    return {"task": runs, "task_difference": None if apart is None else asdict(apart)}


def _every_run(outcomes: Sequence[Outcome]) -> FindingTable:
    rows = [
        (
            *(one.cell.seed, "yes" if one.cell.arm == WITH else "no"),
            round(100 * one.found["accuracy"], 2),
            round(one.found["open_words"], 1),
            round(one.found["seconds"]),
        )
        for one in outcomes
    ]
    columns = ("seed", "senses", "accuracy, %", "open words", "seconds")
    split = outcomes[0].found["split"]
    return FindingTable(f"Rows of the task's {split} split", columns, tuple(rows))
