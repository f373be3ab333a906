"""The sparsity frontier: accuracy against open words, trained for each number or turned down."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from lexical_sae.studies.grid_config import GridConfig, Settings, refuse_given
from lexical_sae.training.recipes import RECIPES

if TYPE_CHECKING:
    from rich.console import Console

    from lexical_sae.studies.arms_table import Arm
    from lexical_sae.studies.grid import TrainedCell

WORDS = (8, 16, 32, 64, 128, 256, 512)
Words = Annotated[int, Field(ge=1, le=10_000)]


class FrontierConfig(GridConfig):
    study: Literal["sparsity_frontier"] = "sparsity_frontier"
    of_the_arms: ClassVar[Mapping[str, str]] = {
        "target_words": "expected target_words: beside train, which holds for all datasets"
    }
    target_words: list[Words] = list(WORDS)  # noqa: RUF012 (pydantic copies it)
    turned: Words | None = None  # the model whose thresholds are turned; null: the densest

    @field_validator("target_words")
    @classmethod
    def _each_once(cls, value: list[int]) -> list[int]:
        if not value or len(set(value)) < len(value):
            raise ValueError(f"found {value}; expected one or more numbers, each once")
        return sorted(value)

    @model_validator(mode="after")
    def _targets(self) -> FrontierConfig:
        if self.turned is not None and self.turned not in self.target_words:
            raise ValueError(
                f"turned is {self.turned}; expected one of target_words "
                f"({', '.join(map(str, self.target_words))})."
            )
        for name, own in self.datasets.items():
            refuse_given(own, f"datasets.{name}", {"start_words": "expected it in train"})
        return self

    def arms(self) -> dict[str, Settings]:
        """Training only closes words, so it starts with at least twice as many as are wanted."""
        usual = self.train.get("start_words") or RECIPES["default"].start_words or 0
        return {
            str(words): {"target_words": words, "start_words": max(usual, 2 * words)}
            for words in self.target_words
        }

    def settings(self, dataset: str, backbone: str, seed: int) -> Settings:
        """What is wanted is the arm's."""
        given = super().settings(dataset, backbone, seed)
        return {name: v for name, v in given.items() if name not in ("target_words", "start_words")}

    @property
    def dial(self) -> int:
        return self.turned or max(self.target_words)


def run_frontier(config: FrontierConfig, folder: Path, console: Console) -> dict[str, Any]:
    from lexical_sae.studies.arms_table import arms_of, arms_table
    from lexical_sae.studies.frontier_finding import frontier_finding
    from lexical_sae.studies.grid import run_grid
    from lexical_sae.studies.grid_report import rows_of, write_grid

    def measure(trained: TrainedCell) -> dict[str, Any]:
        from lexical_sae.evaluation.dial import measure_dial
        from lexical_sae.studies.cell_evaluation import subject_of
        from lexical_sae.studies.cell_measures import basic_measures

        found = basic_measures(trained)
        if trained.cell.arm == str(config.dial):
            found["dial"] = measure_dial(subject_of(trained)).to_dict()
        return found

    clock = time.perf_counter()
    cells, options = config.cells(), {"dial": config.dial}
    outcomes = run_grid(cells, folder, console, measure, rows=rows_of(config), options=options)
    arms = arms_of(outcomes)
    table = arms_table("Trained for each number of words", arms, heading="target")
    parts = {
        ("Frontier", "What do fewer words cost?"): (
            frontier_finding(arms, outcomes, table, config.dial),
            time.perf_counter() - clock,
        )
    }
    return write_grid(config, folder, console, "Sparsity frontier", outcomes, _lines(arms), parts)


def _lines(arms: Sequence[Arm]) -> list[str]:
    from lexical_sae.studies.places import place_names, place_of

    where = place_names(arms)
    return [
        f"{where[place_of(arm)]}, {arm.name} words wanted: "
        f"{arm.mean('open_words') or 0:.0f} are open, "
        f"{100 * (arm.accuracy().value or 0):.1f} % right."
        for arm in arms
        if arm.finished
    ]
