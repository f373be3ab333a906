"""The evaluation suite over a trained cell, kept in the cell's folder."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lexical_sae.evaluation.drift import untrained_model
from lexical_sae.evaluation.steps import Step, chosen_steps
from lexical_sae.evaluation.subject import Subject
from lexical_sae.evaluation.suite import run_suite
from lexical_sae.model.dense_twin import DenseTwin
from lexical_sae.report.evaluation_files import write_report
from lexical_sae.report.finding import Finding, FindingTable
from lexical_sae.studies.cells import Cell
from lexical_sae.studies.grid import AGAIN, Check, TrainedCell
from lexical_sae.training.config import RunConfig
from lexical_sae.training.run import Data

FOLDER = "evaluation"


def subject_of(
    trained: TrainedCell,
    peer_texts: int = 50,
    fitted_rows: int | None = None,
    twin: DenseTwin | None = None,
) -> Subject:
    """`fitted_rows` of the training rows are what circuits, probes and autoencoders may see; None
    leaves it to the steps."""
    return Subject(
        trained.model,
        trained.test,
        trained.train,
        twin,
        lambda: untrained_model(trained.config, trained.model, trained.data.train),
        peer_texts=peer_texts,
        fitted_rows=fitted_rows,
        seed=trained.cell.seed,
    )


def check_of(steps: Sequence[str] | None) -> Check:
    """That every step can be taken on the data of a run; told before anything is trained."""

    def check(config: RunConfig, data: Data) -> None:
        try:
            chosen_steps(None if steps is None else ",".join(steps), data.train.task)
        except ValueError as error:
            raise ValueError(f"{config.dataset}: {error}") from None

    return check


def evaluate_cell(
    trained: TrainedCell,
    steps: Sequence[str] | None,
    *,
    peer_texts: int,
    fitted_rows: int | None = None,
    twin: DenseTwin | None = None,
) -> dict[str, Any]:
    """What evaluation.json holds, with its report beside it; step by step, so that it can be
    stopped."""

    def started(step: Step, place: int) -> None:
        trained.console.print(f"evaluating: {step.title}", style="dim", markup=False)

    names = None if steps is None else ",".join(steps)
    chosen = chosen_steps(names, trained.test.task)
    subject = subject_of(trained, peer_texts, fitted_rows, twin)
    config = trained.config.model_dump(mode="json")
    run_suite(subject, trained.folder / FOLDER, chosen, config=config, started=started)
    found = evaluation_of(trained.folder)
    write_report(found, trained.folder / FOLDER, tables=True)
    return found


def evaluate_beside(
    trained: TrainedCell,
    steps: Sequence[str] | None,
    *,
    peer_texts: int,
    fitted_rows: int | None = None,
    study: Path,
    twin: str,
) -> dict[str, Any]:
    """Evaluated with the dense twin of the same run. Where that one failed the rest is told, and
    `again` keeps a result without it from standing for good."""
    beside = twin_folder(trained.cell, study, twin)
    dense = None if beside is None else DenseTwin.from_pretrained(beside / "model")
    evaluate_cell(trained, steps, peer_texts=peer_texts, fitted_rows=fitted_rows, twin=dense)
    return {} if dense is not None else {AGAIN: "the dense twin of this run has not been trained"}


def evaluation_of(folder: Path) -> dict[str, Any]:
    """Of a cell that was evaluated before."""
    text = (folder / FOLDER / "evaluation.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def twin_folder(cell: Cell, folder: Path, twin: str) -> Path | None:
    """Of the dense twin with the same dataset, backbone and seed, if it has been trained."""
    other = Cell(cell.dataset, cell.backbone, twin, cell.seed, {})
    found = folder / other.path
    return found if (found / "metrics.json").is_file() else None


def table_of(evaluation: dict[str, Any], step: str, title: str) -> FindingTable | None:
    """A table of a step, by its title."""
    if step not in evaluation["steps"]:
        return None
    tables = Finding.from_dict(dict(evaluation["steps"][step])).tables
    return next((table for table in tables if table.title == title), None)
