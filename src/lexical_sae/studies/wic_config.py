"""What a word-in-context study looks at."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from lexical_sae.studies.cells import Cell, run_cell
from lexical_sae.studies.strict import Strict
from lexical_sae.training.config import DEFAULT_BACKBONE


class WicConfig(Strict):
    study: Literal["wic"] = "wic"
    pairs: str | None = "wic"  # dataset with the columns of WiC; null: only the task
    backbone: str = DEFAULT_BACKBONE
    contexts: dict[str, int] = {}  # noqa: RUF012  dataset → texts to look for contexts in
    senses: Annotated[int, Field(ge=2, le=9)] = 2
    fewest: Annotated[int, Field(ge=4)] = 10  # contexts of a word that gets senses
    train: dict[str, Any] | None = None  # a run, trained with and without senses
    seeds: list[int] = [0]  # noqa: RUF012  (pydantic copies it)
    seed: int = 0

    @model_validator(mode="after")
    def _something(self) -> WicConfig:
        if self.pairs is None and self.train is None:
            raise ValueError("pairs and train are both null; expected at least one of them.")
        return self


def wic_cells(config: WicConfig) -> list[Cell]:
    """The runs with senses and without, if there are any."""
    if config.train is None:
        return []
    return [
        run_cell({**config.train, "seed": seed}, "train", arm)
        for seed in config.seeds
        for arm in ("without senses", "with senses")
    ]
