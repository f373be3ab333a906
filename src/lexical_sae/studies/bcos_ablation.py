"""Heads compared: the ReLU head, B-cos heads, and one linear layer."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import field_validator

from lexical_sae.studies.grid_config import GridConfig, Settings, known_names

if TYPE_CHECKING:
    from rich.console import Console

RELU = "mlp"  # two layers with a ReLU between, as the default recipe has it
HEADS: dict[str, Settings] = {
    RELU: {"model": {"head": "mlp"}},
    "bcos, depth 2": {"model": {"head": "bcos", "head_depth": 2}},
    "bcos, depth 3": {"model": {"head": "bcos", "head_depth": 3}},
    "linear": {"model": {"head": "linear"}},
}


class BcosConfig(GridConfig):
    study: Literal["bcos_ablation"] = "bcos_ablation"
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
    from lexical_sae.studies.arms_table import arms_of, arms_table
    from lexical_sae.studies.cell_measures import basic_measures
    from lexical_sae.studies.grid import run_grid
    from lexical_sae.studies.grid_report import rows_of, write_grid

    clock = time.perf_counter()
    outcomes = run_grid(config.cells(), folder, console, basic_measures, rows=rows_of(config))
    arms = arms_of(outcomes)
    found = Finding(tables=(arms_table("Heads", arms, RELU, heading="head"),))
    parts = {("Heads", "What does the form of the head bring?"): (found, _since(clock))}
    lines = [
        f"{arm.dataset}, {arm.name}: {100 * (arm.accuracy().value or 0):.1f} % right with "
        f"{arm.mean('open_words') or 0:.0f} open words; the largest residual of a sum is "
        f"{max(one.found['max_residual'] for one in arm.finished.values()):.0e}."
        for arm in arms
        if arm.finished
    ]
    return write_grid(config, folder, console, "Heads", outcomes, lines, parts)


def _since(clock: float) -> float:
    return time.perf_counter() - clock
