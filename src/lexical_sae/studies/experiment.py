"""One model: trained, then evaluated in full, with its dense twin beside it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, field_validator

from lexical_sae.studies.grid_config import GridConfig, Settings, known_names

if TYPE_CHECKING:
    from rich.console import Console

    from lexical_sae.report.finding import Finding
    from lexical_sae.studies.grid import Outcome, TrainedCell

OURS, TWIN = "lexical", "dense twin"


class ExperimentConfig(GridConfig):
    study: Literal["experiment"] = "experiment"
    steps: list[str] | None = None  # of the evaluation; null: all
    twin: bool = True  # train the dense twin too: some steps compare with it
    peer_texts: Annotated[int, Field(ge=1)] = 50  # that LIME, SHAP and others explain
    # of training, for circuits, probes and autoencoders; null: 2,000, or 500 sentences of a tagger
    fitted_rows: Annotated[int, Field(ge=60)] | None = None

    @field_validator("steps")
    @classmethod
    def _known(cls, value: list[str] | None) -> list[str] | None:
        if value is None:
            return None
        from lexical_sae.evaluation.steps import STEPS

        return known_names(value, [step.name for step in STEPS])

    def arms(self) -> dict[str, Settings]:
        """The twin first: the evaluation of the other needs it."""
        return {**({TWIN: {"dense_twin": True}} if self.twin else {}), OURS: {}}


def run_experiment(
    config: ExperimentConfig, folder: Path, console: Console, title: str = "Experiment"
) -> dict[str, Any]:
    from lexical_sae.evaluation.explainers import missing
    from lexical_sae.studies.cell_evaluation import check_of
    from lexical_sae.studies.grid import run_grid
    from lexical_sae.studies.grid_report import rows_of

    def measure(trained: TrainedCell) -> dict[str, Any]:
        from lexical_sae.studies.cell_evaluation import evaluate_beside, evaluate_cell
        from lexical_sae.studies.cell_measures import basic_measures

        again: dict[str, Any] = {}
        texts, fitted = config.peer_texts, config.fitted_rows
        if trained.cell.arm == OURS and config.twin and trained.test.task != "tagging":
            again = evaluate_beside(
                trained,
                config.steps,
                peer_texts=texts,
                fitted_rows=fitted,
                study=folder,
                twin=TWIN,
            )
        elif trained.cell.arm == OURS:
            evaluate_cell(trained, config.steps, peer_texts=texts, fitted_rows=fitted)
        return {**basic_measures(trained), **again}

    options = {
        **{"steps": config.steps, "peer_texts": config.peer_texts, "twin": config.twin},
        "fitted_rows": config.fitted_rows,
        "not_installed": list(missing()),
    }
    cells, rows, check = config.cells(), rows_of(config), check_of(config.steps)
    outcomes = run_grid(cells, folder, console, measure, rows=rows, options=options, check=check)
    return _written(config, folder, console, title, outcomes)


def _written(
    config: ExperimentConfig,
    folder: Path,
    console: Console,
    title: str,
    outcomes: Sequence[Outcome],
) -> dict[str, Any]:
    from lexical_sae.report.evaluation_page import summary
    from lexical_sae.report.finding import Finding
    from lexical_sae.studies.arms_table import NOTE, arms_of, arms_table
    from lexical_sae.studies.cell_evaluation import evaluation_of
    from lexical_sae.studies.grid_report import write_grid
    from lexical_sae.studies.places import place_names, place_of

    table = arms_table("Models", arms_of(outcomes), TWIN if config.twin else None, heading="model")
    parts: dict[tuple[str, str], tuple[Finding, float]] = {
        ("Models", "How good is it, and what does it cost?"): (
            Finding(tables=(table,), notes=(NOTE,)),
            0.0,
        )
    }
    meanings: dict[str, Any] = {}
    lines: list[str] = []
    ours = [one for one in outcomes if one.cell.arm == OURS and not one.failed]
    places = place_names(one.cell for one in ours)
    for one in ours:
        found = evaluation_of(folder / one.cell.path)
        meanings |= found["metrics"]
        place = f"{places[place_of(one.cell)]}, seed {one.cell.seed}"
        where = f" ({place})" if len(ours) > 1 else ""
        lines += [line + where for line in summary(found)]
        lines += [f"The check of {name} failed{where}." for name in found["failed"]]
        for step in found["steps"].values():
            part = (Finding.from_dict(dict(step)), float(step["seconds"]))
            parts[step["title"] + where, step["question"]] = part
    return write_grid(config, folder, console, title, outcomes, lines, parts, meanings=meanings)
