"""Settings of a study that trains one thing: run once, or once for each of several seeds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import Field, model_validator

from lexical_sae.studies.strict import StudyConfig

Own = TypeVar("Own", bound="Seeded")


class Seeded(StudyConfig):
    """`seed` draws rows, needles and the like; `train` has its own for the weights. With several
    `seeds` both are 0, 1, … in turn."""

    train: dict[str, Any]  # as `lexical-sae train` takes it
    seeds: Annotated[int, Field(ge=1, le=100)] = 1
    seed: int = 0

    @model_validator(mode="after")
    def _one_or_several(self) -> Seeded:
        given = [f"seed: {self.seed}"] if self.seed else []
        given += [f"train.seed: {self.train['seed']}"] if "seed" in self.train else []
        if self.seeds > 1 and given:
            raise ValueError(
                f"seeds: {self.seeds} and {' and '.join(given)} are given; expected seeds alone, "
                "which stands for 0, 1, … in turn, or one seed."
            )
        return self

    def by_seed(self: Own) -> dict[Path, Own]:
        """The study of each seed, by its folder below that of the whole."""
        if self.seeds == 1:
            return {Path(): self}
        given = self.model_dump()
        return {
            Path(f"seed{seed}"): type(self).model_validate(
                {**given, "seeds": 1, "seed": seed, "train": {**self.train, "seed": seed}}
            )
            for seed in range(self.seeds)
        }
