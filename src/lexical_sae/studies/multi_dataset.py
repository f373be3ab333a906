"""Datasets × backbones × recipes in one table."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import field_validator

from lexical_sae.studies.grid_config import GridConfig, Settings, known_names
from lexical_sae.training.recipes import RECIPES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from lexical_sae.studies.arms_table import Arm

TWIN = "dense twin"
OWN = "own"  # the recipe that suits the dataset: default, or tagging


class MultiDatasetConfig(GridConfig):
    study: Literal["multi_dataset"] = "multi_dataset"
    of_the_arms: ClassVar[Mapping[str, str]] = {"recipe": "expected recipes: beside train"}
    recipes: list[str] = [OWN, TWIN]  # noqa: RUF012 (pydantic copies it)

    @field_validator("recipes")
    @classmethod
    def _known(cls, value: list[str]) -> list[str]:
        return known_names(value, [OWN, TWIN, *RECIPES])

    def arms(self) -> dict[str, Settings]:
        own: dict[str, Settings] = {OWN: {}, TWIN: {"dense_twin": True}}
        return {name: own.get(name, {"recipe": name}) for name in self.recipes}


def run_multi_dataset(config: MultiDatasetConfig, folder: Path, console: Console) -> dict[str, Any]:
    from lexical_sae.report.finding import Finding
    from lexical_sae.studies.arms_figure import arms_figures
    from lexical_sae.studies.arms_table import NOTE, arms_of, arms_table
    from lexical_sae.studies.cell_measures import basic_measures
    from lexical_sae.studies.grid import run_grid
    from lexical_sae.studies.grid_report import rows_of, write_grid

    clock = time.perf_counter()
    outcomes = run_grid(config.cells(), folder, console, basic_measures, rows=rows_of(config))
    arms = arms_of(outcomes)
    reference = TWIN if TWIN in config.recipes else None
    table = arms_table("Datasets, backbones and recipes", arms, reference, heading="recipe")
    found = Finding(tables=(table,), dots=arms_figures("Recipes", arms), notes=(NOTE,))
    parts = {("Grid", "Does it hold elsewhere?"): (found, time.perf_counter() - clock)}
    return write_grid(config, folder, console, "Datasets", outcomes, _lines(arms), parts)


def _lines(arms: Sequence[Arm]) -> list[str]:
    from lexical_sae.studies.places import place_names, place_of

    where = place_names(arms)
    return [
        f"{where[place_of(arm)]}, {arm.name}: {100 * (arm.accuracy().value or 0):.1f} % right"
        + (f", {words:.0f} open words." if (words := arm.mean("open_words")) is not None else ".")
        for arm in arms
        if arm.finished
    ]
