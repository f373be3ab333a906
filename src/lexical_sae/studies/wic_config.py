"""What a word-in-context study looks at."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from lexical_sae.studies.cells import Cell, run_cell
from lexical_sae.studies.grid_config import in_equal_batches, refuse_given
from lexical_sae.studies.needs import Need, in_splits
from lexical_sae.studies.strict import StudyConfig
from lexical_sae.training.config import DEFAULT_BACKBONE

if TYPE_CHECKING:
    from lexical_sae.text.dataset import TextDataset

SPLITS = ("train", "validation", "test")  # of the pairs
Texts = Annotated[int, Field(ge=1)]
PAIR_COLUMNS = {"text_column": "sentence1", "label_column": "label_name"}

WITHOUT, WITH = "without senses", "with senses"  # the arms of the task


class WicConfig(StudyConfig):
    study: Literal["wic"] = "wic"
    pairs: str | None = "wic"  # dataset with the columns of WiC; null: only the task
    backbone: str = DEFAULT_BACKBONE
    contexts: dict[str, Texts] = {}  # noqa: RUF012  dataset → texts to look for contexts in
    senses: Annotated[int, Field(ge=2, le=9)] = 2
    fewest: Annotated[int, Field(ge=4)] = 10  # contexts of a word that gets senses
    train: dict[str, Any] | None = None  # a run, trained with and without senses
    seeds: Annotated[int, Field(ge=1, le=100)] = 1  # runs with senses and without
    train_rows: Annotated[int, Field(ge=10)] | None = None  # evenly spread; null: all
    seed: int = 0  # of the pairs

    @model_validator(mode="after")
    def _something(self) -> WicConfig:
        if self.pairs is None and self.train is None:
            raise ValueError("pairs and train are both null; expected at least one of them.")
        if self.fewest < 2 * self.senses:
            raise ValueError(
                f"fewest is {self.fewest}; expected at least {2 * self.senses} contexts to tell "
                f"{self.senses} senses apart."
            )
        if self.train is not None:
            refuse_given(self.train, "train")
        wic_cells(self)  # a setting that is wrong is told now, not after hours of training
        return self


def wic_settings(config: WicConfig, seed: int, on: bool) -> dict[str, Any]:
    """Of the run with senses, or of the one without."""
    given = config.train or {}
    senses = (given.get("senses") or {}) if on else None
    return in_equal_batches({**given, "seed": seed, "senses": senses})


def run_name(seed: int, on: bool) -> str:
    """The folder of the run with senses or without."""
    return f"{'on' if on else 'off'}-{seed}"


def wic_needs(config: WicConfig) -> list[Need]:
    """The pairs, and the texts that contexts of their words are looked for in."""
    if config.pairs is None:
        return []
    contexts = [Need(name, partial(_contexts, n)) for name, n in config.contexts.items()]
    return [Need(config.pairs, _pairs, PAIR_COLUMNS), *contexts]


def _pairs(splits: Mapping[str, TextDataset]) -> str:
    told = ", ".join(f"{len(in_splits(splits, name)):,} {name}" for name in SPLITS)
    return f"{told} pairs"


def _contexts(wanted: int, splits: Mapping[str, TextDataset]) -> str:
    rows = len(in_splits(splits, "train"))
    return f"{min(wanted, rows):,} of {rows:,} train texts, to look for contexts in"


def wic_cells(config: WicConfig) -> list[Cell]:
    """The runs with senses and without, if there are any."""
    if config.train is None:
        return []
    return [
        run_cell(wic_settings(config, seed, on), "train", arm, kept=Path(run_name(seed, on)))
        for seed in range(config.seeds)
        for arm, on in ((WITHOUT, False), (WITH, True))
    ]
