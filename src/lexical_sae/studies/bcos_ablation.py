"""Heads compared: the ReLU head, B-cos heads, and one linear layer."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import field_validator

from lexical_sae.studies.grid_config import GridConfig, Settings, known_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from lexical_sae.studies.arms_table import Arm
    from lexical_sae.studies.grid import TrainedCell

RELU = "mlp"  # two layers with a ReLU between, as the default recipe has it
HEADS: dict[str, Settings] = {
    RELU: {"model": {"head": "mlp"}},
    "bcos, depth 2": {"model": {"head": "bcos", "head_depth": 2}},
    "bcos, depth 3": {"model": {"head": "bcos", "head_depth": 3}},
    "linear": {"model": {"head": "linear"}},
}


class BcosConfig(GridConfig):
    study: Literal["bcos_ablation"] = "bcos_ablation"
    of_the_arms: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("model.head", "model.head_depth"), "expected heads: beside train"
    )
    heads: list[str] = list(HEADS)  # noqa: RUF012 (pydantic copies it)

    @field_validator("heads")
    @classmethod
    def _known(cls, value: list[str]) -> list[str]:
        return known_names(value, HEADS)

    def arms(self) -> dict[str, Settings]:
        """The reference is always among them."""
        return {name: head for name, head in HEADS.items() if name in (RELU, *self.heads)}


def run_bcos(config: BcosConfig, folder: Path, console: Console) -> dict[str, Any]:
    from lexical_sae.report.finding import Finding
    from lexical_sae.studies.arms_figure import arms_figures
    from lexical_sae.studies.arms_table import NOTE, arms_of, arms_table
    from lexical_sae.studies.grid import run_grid
    from lexical_sae.studies.grid_report import rows_of, write_grid

    clock = time.perf_counter()
    rows, options = rows_of(config), {"removal": True}
    outcomes = run_grid(config.cells(), folder, console, _measure, rows=rows, options=options)
    arms = arms_of(outcomes)
    found = Finding(
        tables=(arms_table("Heads", arms, RELU, heading="head"),),
        dots=arms_figures("Heads", arms),
        notes=(
            "Each open word of each decision is closed alone: the error of removal is how far the "
            "change of the logit lies from what the contribution says, on average; the correlation "
            "is that of the two over all words. A sum that is exact need not be additive.",
            NOTE,
        ),
    )
    parts = {("Heads", "What does the form of the head bring?"): (found, _since(clock))}
    return write_grid(config, folder, console, "Heads", outcomes, _lines(arms), parts)


def _lines(arms: Sequence[Arm]) -> list[str]:
    from lexical_sae.studies.places import place_names, place_of

    where = place_names(arms)
    return [
        f"{where[place_of(arm)]}, {arm.name}: {100 * (arm.accuracy().value or 0):.1f} % right with "
        f"{arm.mean('open_words') or 0:.0f} open words; the largest residual of a sum is "
        f"{max(one.found['max_relative_residual'] for one in arm.finished.values()):.0e} of its "
        "scale" + _removal(arm.mean("removal_error"), arm.mean("removal_correlation"))
        for arm in arms
        if arm.finished
    ]


def _measure(trained: TrainedCell) -> dict[str, Any]:
    from lexical_sae.evaluation.faithfulness import measure_removal
    from lexical_sae.studies.cell_evaluation import subject_of
    from lexical_sae.studies.cell_measures import basic_measures

    removed = measure_removal(subject_of(trained).taken_apart, trained.cell.seed)
    named = ("removal_error", "removal_correlation", "units_flipped")
    return basic_measures(trained) | {name: removed[name].value for name in named}


def _removal(error: float | None, correlation: float | None) -> str:
    if error is None or correlation is None:
        return "."
    return (
        f", and without a word the logit moves as its contribution says to within {error:.2g} on "
        f"average (correlation {correlation:.3f})."
    )


def _since(clock: float) -> float:
    return time.perf_counter() - clock
