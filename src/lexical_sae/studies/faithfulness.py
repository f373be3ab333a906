"""Explainers compared on several datasets: what is lost without the words that they name."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from lexical_sae.studies.experiment import OURS, TWIN
from lexical_sae.studies.grid_config import GridConfig, Settings

if TYPE_CHECKING:
    from rich.console import Console

    from lexical_sae.report.finding import DotPlot, Finding, FindingTable
    from lexical_sae.studies.grid import Outcome, TrainedCell

STEPS = ("task", "faithfulness", "explainers", "input")


class FaithfulnessConfig(GridConfig):
    study: Literal["faithfulness"] = "faithfulness"
    twin: bool = True  # the explainers of a dense twin too, at the words of the input
    peer_texts: Annotated[int, Field(ge=1)] = 50  # that LIME, SHAP and others explain

    def arms(self) -> dict[str, Settings]:
        return {**({TWIN: {"dense_twin": True}} if self.twin else {}), OURS: {}}


def run_faithfulness(config: FaithfulnessConfig, folder: Path, console: Console) -> dict[str, Any]:
    from lexical_sae.evaluation.explainers import missing
    from lexical_sae.studies.cell_evaluation import check_of
    from lexical_sae.studies.grid import run_grid
    from lexical_sae.studies.grid_report import rows_of, write_grid

    def measure(trained: TrainedCell) -> dict[str, Any]:
        from lexical_sae.studies.cell_evaluation import evaluate_beside, evaluate_cell
        from lexical_sae.studies.cell_measures import basic_measures

        again: dict[str, Any] = {}
        texts = config.peer_texts
        if trained.cell.arm == OURS and config.twin:
            again = evaluate_beside(trained, STEPS, peer_texts=texts, study=folder, twin=TWIN)
        elif trained.cell.arm == OURS:
            evaluate_cell(trained, STEPS, peer_texts=texts)
        return {**basic_measures(trained), **again}

    clock = time.perf_counter()
    options = {
        **{"peer_texts": config.peer_texts, "twin": config.twin},
        "not_installed": list(missing()),
    }
    cells, rows, check = config.cells(), rows_of(config), check_of(STEPS)
    outcomes = run_grid(cells, folder, console, measure, rows=rows, options=options, check=check)
    found, lines = _compared(outcomes, folder)
    parts = {
        ("Explainers", "Which explainer finds the words that decide?"): (
            found,
            time.perf_counter() - clock,
        )
    }
    return write_grid(config, folder, console, "Faithfulness", outcomes, lines, parts)


def _compared(outcomes: Sequence[Outcome], folder: Path) -> tuple[Finding, list[str]]:
    """The same table of every dataset under each other, and who is ahead of ours in each."""
    from lexical_sae.evaluation.compared import ahead_line, removability_title
    from lexical_sae.evaluation.explainers import AT_INPUT, AT_OPEN_WORDS, OF_TWIN
    from lexical_sae.report.finding import Finding
    from lexical_sae.studies.cell_evaluation import evaluation_of, table_of
    from lexical_sae.studies.places import place_names, place_of

    steps = {AT_OPEN_WORDS: "explainers", AT_INPUT: "input", OF_TWIN: "input"}
    tables, lines, dots = [], [], []
    ours = [one for one in outcomes if one.cell.arm == OURS and not one.failed]
    places = place_names(one.cell for one in ours)
    where = {one: places[place_of(one.cell)] for one in ours}
    title_of = {one: f"{where[one]}, seed {one.cell.seed}" for one in ours}
    found = {one: evaluation_of(folder / one.cell.path) for one in ours}
    for at, step in steps.items():
        for title in (at, removability_title(at)):
            each = {one: table_of(found[one], step, title) for one in ours}
            known = {one: table for one, table in each.items() if table is not None}
            tables += _joined(title, {o: (where[o], o.cell.seed, t) for o, t in known.items()})
            if title == at:
                said = f"{at[0].lower()}{at[1:]}"
                lines += [f"{title_of[o]}, {said}: {ahead_line(t)}." for o, t in known.items()]
                dots += [_figure(f"{at}: {title_of[o]}", t) for o, t in known.items()]
    notes = [
        f"{title_of[one]}: {note}"
        for one in ours
        for step in dict.fromkeys(steps.values())
        for note in found[one]["steps"].get(step, {}).get("notes", ())
    ]
    return Finding(tables=tuple(tables), dots=tuple(dots), notes=tuple(notes)), lines


def _joined(
    title: str, known: Mapping[Outcome, tuple[str, int, FindingTable]]
) -> list[FindingTable]:
    """One table over all runs; where texts are too long to search for limits NAOPC is another
    column, and so another table."""
    from lexical_sae.report.finding import FindingTable

    found = []
    kinds = list(dict.fromkeys(table.columns for _, _, table in known.values()))
    for columns in kinds:
        some = [one for one in known.values() if one[2].columns == columns]
        rows = tuple((where, seed, *row) for where, seed, table in some for row in table.rows)
        named = f": {', '.join(dict.fromkeys(where for where, _, _ in some))}"
        shown = title + named * (len(kinds) > 1)
        found.append(FindingTable(shown, ("dataset", "seed", *columns), rows))
    return found


def _figure(title: str, table: FindingTable) -> DotPlot:
    """NAOPC of every explainer; slow ones explained fewer texts, which is said beside them."""
    from lexical_sae.report.finding import Dot, DotPlot, Estimate

    def number(cell: object) -> float | None:
        return float(cell) if isinstance(cell, (int, float)) else None

    dots = tuple(
        Dot(
            str(row[0]),
            Estimate(number(row[2]), number(row[3]), number(row[4]), "NAOPC is undefined"),
            f"{row[1]} texts",
        )
        for row in table.rows
    )
    return DotPlot(title, table.columns[2], dots)
