"""What a long-context study trains, and how long the texts are that it hides needles in."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from lexical_sae.studies.cells import Cell, run_cell
from lexical_sae.studies.grid_config import in_equal_batches, refuse_given
from lexical_sae.studies.seeded import Seeded

LENGTHS = (50, 100, 200, 400, 800, 1600, 4000)
PLACES = (0.0, 0.25, 0.5, 0.75, 1.0)


class LongContextConfig(Seeded):
    """The dense twin is trained as `train` says, too."""

    study: Literal["long_context"] = "long_context"
    train_rows: Annotated[int, Field(ge=1)] | None = None  # evenly spread; null: all
    lengths: list[Annotated[int, Field(ge=20, le=100_000)]] = list(LENGTHS)  # noqa: RUF012
    places: list[Annotated[float, Field(ge=0, le=1)]] = list(PLACES)  # noqa: RUF012
    needles: Annotated[int, Field(ge=2)] = 100  # test texts, as many of each class
    fillers: Annotated[int, Field(ge=1)] = 40  # texts without a needle, of each length

    @field_validator("lengths", "places")
    @classmethod
    def _each_once(cls, value: list[Any]) -> list[Any]:
        if not value or len(set(value)) < len(value):
            raise ValueError(f"found {value}; expected one or more numbers, each once")
        return sorted(value)

    @model_validator(mode="after")
    def _runs(self) -> LongContextConfig:
        refuse_given(self.train, "train", {"dense_twin": "both are trained; expected it left out"})
        long_context_cells(self)  # a setting that is wrong is told now
        return self

    def settings(self, twin: bool) -> dict[str, Any]:
        """Of our run, or of the twin's."""
        return {**in_equal_batches(self.train), "dense_twin": twin}


def long_context_cells(config: LongContextConfig) -> list[Cell]:
    """The two runs that the study trains, for each seed."""
    return [
        run_cell(one.settings(twin), "train", arm, kept=folder / kept)
        for folder, one in config.by_seed().items()
        for twin, arm, kept in ((False, None, "ours"), (True, "dense twin", "twin"))
    ]
