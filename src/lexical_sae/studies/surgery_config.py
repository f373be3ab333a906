"""What a surgery study trains, where it looks for gaps, and what it may give up for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, field_validator, model_validator

from lexical_sae.studies.cells import Cell, run_cell
from lexical_sae.studies.grid_config import known_names
from lexical_sae.studies.needs import Need, in_splits
from lexical_sae.studies.seeded import Seeded
from lexical_sae.studies.strict import Strict
from lexical_sae.surgery.front import Aim

if TYPE_CHECKING:
    from lexical_sae.text.dataset import TextDataset

RUN = "run"  # the folder of what is trained


class Biased(Strict):
    """The rows that gaps are measured on, and the groups that they are of."""

    dataset: str
    split: str = "test"
    choose: str | None = None  # split to choose words on; null: other rows of the same split
    rows: Annotated[int, Field(ge=60)] = 20_000
    labels: dict[str, str] | None = None  # the task's name for each label of these rows
    column: str | None = None  # groups by the values of a column
    columns: list[str] | None = None  # or a group per column, of the rows where it is 0.5 or more
    terms: str | None = None  # or by a list of words

    @model_validator(mode="after")
    def _one(self) -> Biased:
        given = [name for name in ("column", "columns", "terms") if getattr(self, name)]
        if len(given) != 1:
            raise ValueError(
                f"biased has {' and '.join(given) or 'no groups'}; expected one of column, columns "
                "and terms."
            )
        if self.choose == self.split:
            raise ValueError(f"choose and split are both {self.split!r}; expected other rows.")
        return self

    def used(self, splits: Mapping[str, TextDataset]) -> str:
        """How many rows a study takes; those of one split are parted where no texts share a frame,
        so there may be a few less."""
        measured = len(in_splits(splits, self.split))
        if self.choose is None:
            most = f"up to {min(self.rows, measured // 2):,}"
            return (
                f"{most} of {measured:,} {self.split} rows to choose words on, and {most} others "
                "to measure gaps on"
            )
        choosing = len(in_splits(splits, self.choose))
        return (
            f"{min(self.rows, choosing):,} of {choosing:,} {self.choose} rows to choose words on, "
            f"{min(self.rows, measured):,} of {measured:,} {self.split} rows to measure gaps on"
        )


class Planted(Strict):
    """A word that is put into training texts of one class: a shortcut to be found."""

    word: Annotated[str, Field(pattern=r"^\w+$")]
    label: str
    share: Annotated[float, Field(gt=0, le=1)] = 0.9  # of that class's texts
    elsewhere: Annotated[float, Field(ge=0, lt=1)] = 0.05  # of the other texts


class SurgeryConfig(Seeded):
    study: Literal["surgery"] = "surgery"
    positive: list[str]  # the classes that a false positive is of
    biased: Biased | None = None
    planted: Planted | None = None
    concept: str | list[str] | None = None  # lists of words whose mention is erased and probed for
    aim: Aim = "gap"  # what is to fall on rows with groups
    largest_loss: Annotated[float, Field(ge=0, le=1)] = 0.01  # of accuracy, on validation rows
    words: Annotated[int, Field(ge=1, le=200)] = 80  # that may be cut out at the most
    evaluate: list[str] | None = None  # steps of the evaluation, on the trained model
    fitted_rows: Annotated[int, Field(ge=60)] = 4000  # of training, for erasers and probes
    held_out_rows: Annotated[int, Field(ge=60)] | None = None  # of validation and test; null: all

    @field_validator("evaluate")
    @classmethod
    def _steps(cls, value: list[str] | None) -> list[str] | None:
        if value is None:
            return None
        from lexical_sae.evaluation.steps import STEPS

        return known_names(value, [step.name for step in STEPS])

    @model_validator(mode="after")
    def _check(self) -> SurgeryConfig:
        if (self.biased is None) == (self.planted is None):
            raise ValueError("A surgery study has biased rows or a planted word; expected one.")
        if self.planted is not None and self.concept is not None:
            raise ValueError("concept is given, but the concept of a planted word is that word.")
        if not self.positive:
            raise ValueError("positive is empty; expected the names of one or more classes.")
        return self

    @property
    def concept_lists(self) -> list[str]:
        """By default the terms that groups are made by, or else the shipped list."""
        terms = None if self.biased is None else self.biased.terms
        found = self.concept or terms or "identity"
        return [found] if isinstance(found, str) else found


def surgery_cells(config: SurgeryConfig) -> list[Cell]:
    """The one run that a surgery study trains, for each seed."""
    return [
        run_cell(one.train, "train", kept=folder / RUN) for folder, one in config.by_seed().items()
    ]


def surgery_needs(config: SurgeryConfig) -> list[Need]:
    """The rows that gaps are measured on, where they are not the task's own."""
    return [] if config.biased is None else [Need(config.biased.dataset, config.biased.used)]
