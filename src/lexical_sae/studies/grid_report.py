"""What a grid leaves behind: results.json, a report, tables and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from lexical_sae.report.finding import Cell as Shown
from lexical_sae.report.finding import Finding, FindingTable
from lexical_sae.studies.cell_data import Rows
from lexical_sae.studies.cells import short_name
from lexical_sae.studies.grid import Outcome
from lexical_sae.studies.grid_config import GridConfig
from lexical_sae.studies.study_results import Parts, write_results


def rows_of(config: GridConfig) -> Rows:
    return Rows(config.train_rows, config.held_out_rows)


def write_grid(
    config: GridConfig,
    folder: Path,
    console: Console,
    title: str,
    outcomes: Sequence[Outcome],
    lines: Sequence[str],
    parts: Parts,
    *,
    meanings: Mapping[str, Any] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """What results.json holds; `more` is put into it as it is."""
    failed = [one for one in outcomes if one.failed]
    every = Finding(tables=(cells_table(outcomes),))
    spent = sum(float(one.found.get("seconds") or 0.0) for one in outcomes)
    seeds = range(config.seeds)
    return write_results(
        config,
        folder,
        console,
        title,
        f"{', '.join(config.by_dataset())}; {len(outcomes)} runs",
        [*lines, *(f"Failed: {one.cell.title}: {one.failed}" for one in failed)],
        parts,
        seeds=seeds,
        record={
            "study": config.study,
            "seeds": ", ".join(map(str, seeds)),
            "backbones": ", ".join(config.by_backbone()),
            "settings of every run": ", ".join(f"{k}: {v}" for k, v in config.train.items()),
        },
        only_shown={("Runs", "What came of every run?"): (every, spent)},
        meanings=meanings,
        cells=[one.to_dict() for one in outcomes],
        failed=[one.cell.title for one in failed],
        **more,
    )


def cells_table(outcomes: Sequence[Outcome]) -> FindingTable:
    """Every cell with its main numbers, or with the reason for which it failed."""
    rows: list[tuple[Shown, ...]] = []
    for one in outcomes:
        found, cell = one.found, one.cell
        accuracy = found.get("accuracy")
        rows.append(
            (
                *(cell.dataset, short_name(cell.backbone), cell.arm, cell.seed),
                None if accuracy is None else 100 * accuracy,
                found.get("open_words"),
                found.get("max_relative_residual"),
                found.get("seconds"),
                f"failed: {one.failed}" if one.failed else "finished",
            )
        )
    columns = (
        *("dataset", "backbone", "arm", "seed", "accuracy, %", "open words"),
        *("largest residual of a sum / its scale", "seconds", ""),
    )
    return FindingTable("Every run", columns, tuple(rows))
