"""The ablation: the terms of the objective one after the other, and the published recipes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import field_validator

from lexical_sae.studies.grid_config import GridConfig, Settings, known_names
from lexical_sae.training.config import resolve_config

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from lexical_sae.studies.arms_table import Arm

FULL = "full"
TERMS = ("sparsity", "completeness", "separation", "anchor", "guide")  # of the default recipe


def _without(*terms: str) -> Settings:
    return dict.fromkeys(terms)


# Each arm adds a term to the one before it; the last adds the guide and is the recipe itself.
ARMS: dict[str, Settings] = {
    "CE only": {**_without(*TERMS), "warmup_fraction": 1.0},  # it never leaves warm-up
    **{f"+ {TERMS[i]}": _without(*TERMS[i + 1 :]) for i in range(len(TERMS) - 1)},
    FULL: {},
    "cis": {"recipe": "cis"},
    "lexical-sae": {"recipe": "lexical-sae"},
    "cajt": {"recipe": "cajt"},
}


class AblationConfig(GridConfig):
    study: Literal["ablation"] = "ablation"
    of_the_arms: ClassVar[Mapping[str, str]] = {
        "recipe": "the arms say which recipe; expected compared: beside train"
    }
    compared: list[str] = list(ARMS)  # noqa: RUF012 (pydantic copies it)

    @field_validator("compared")
    @classmethod
    def _known(cls, value: list[str]) -> list[str]:
        return known_names(value, ARMS)

    def arms(self) -> dict[str, Settings]:
        """The reference is always among them."""
        return {name: changes for name, changes in ARMS.items() if name in (FULL, *self.compared)}

    def settings(self, dataset: str, backbone: str, seed: int) -> Settings:
        """The same budget for every arm, whatever its recipe says: epochs, batches, target and no
        early end."""
        given = super().settings(dataset, backbone, seed)
        own = resolve_config(given, where="train").settings
        budget = {
            "epochs": own.epochs,
            "batch_size": own.batch_size,
            "target_words": own.target_words,
            "early_stopping": own.early_stopping,
        }
        return {**given, **budget}


def run_ablation(config: AblationConfig, folder: Path, console: Console) -> dict[str, Any]:
    from lexical_sae.report.finding import Finding
    from lexical_sae.studies.arms_figure import arms_figures
    from lexical_sae.studies.arms_table import NOTE, arms_of, arms_table
    from lexical_sae.studies.cell_measures import basic_measures
    from lexical_sae.studies.grid import run_grid
    from lexical_sae.studies.grid_report import rows_of, write_grid

    clock = time.perf_counter()
    outcomes = run_grid(config.cells(), folder, console, basic_measures, rows=rows_of(config))
    arms = arms_of(outcomes)
    found = Finding(
        tables=(arms_table("Ablation", arms, FULL),),
        dots=arms_figures("Ablation", arms),
        notes=(
            "The same epochs, batches, target and rows for every arm.",
            NOTE,
        ),
    )
    parts = {
        ("Ablation", "What does each term bring?"): (found, time.perf_counter() - clock),
    }
    return write_grid(config, folder, console, "Ablation", outcomes, _lines(arms), parts)


def _lines(arms: Sequence[Arm]) -> list[str]:
    """The reference, then how far every other arm is from it, and whether that may be chance."""
    from lexical_sae.studies.arms_table import difference, in_words
    from lexical_sae.studies.places import place_names, place_of

    lines, where = [], place_names(arms)
    for full in (arm for arm in arms if arm.name == FULL and arm.finished):
        place = where[place_of(full)]
        accuracy, words = full.accuracy().value, full.mean("open_words")
        lines.append(
            f"{place}: the full objective is right on {100 * (accuracy or 0):.1f} % with "
            f"{words or 0:.0f} open words."
        )
        for arm in arms:
            same = place_of(arm) == place_of(full) and arm is not full
            found = difference(arm, full) if same else None
            if found is not None:
                lines.append(
                    f"{place}, {arm.name}: {in_words(found)}; "
                    f"{arm.mean('open_words') or 0:.0f} open words."
                )
    return lines
