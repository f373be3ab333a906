"""What a surgery study trains, where it looks for gaps, and what it may give up for them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Biased(Strict):
    """The rows that gaps are measured on, and the groups that they are of."""

    dataset: str
    split: str = "test"
    choose: str | None = None  # split to choose words on; null: other rows of the same split
    rows: Annotated[int, Field(ge=60)] = 20_000
    labels: dict[str, str] | None = None  # the task's name for each label of these rows
    column: str | None = None  # groups by the values of a column
    terms: str | None = None  # or by a list of words

    @model_validator(mode="after")
    def _one(self) -> Biased:
        if (self.column is None) == (self.terms is None):
            raise ValueError("biased has column and terms, or neither; expected one of them.")
        if self.choose == self.split:
            raise ValueError(f"choose and split are both {self.split!r}; expected other rows.")
        return self


class Planted(Strict):
    """A word that is put into training texts of one class: a shortcut to be found."""

    word: str
    label: str
    share: Annotated[float, Field(gt=0, le=1)] = 0.9  # of that class's texts
    elsewhere: Annotated[float, Field(ge=0, lt=1)] = 0.05  # of the other texts


class SurgeryConfig(Strict):
    study: Literal["surgery"] = "surgery"
    train: dict[str, Any]  # as `lexical-sae train` takes it
    positive: list[str]  # the classes that a false positive is of
    biased: Biased | None = None
    planted: Planted | None = None
    concept: str = "identity"  # the list of words whose mention is erased and probed for
    largest_loss: Annotated[float, Field(ge=0, le=1)] = 0.01  # of accuracy, on validation rows
    words: Annotated[int, Field(ge=1, le=200)] = 40  # that may be cut out at the most
    seed: int = 0

    @model_validator(mode="after")
    def _check(self) -> SurgeryConfig:
        if (self.biased is None) == (self.planted is None):
            raise ValueError("A surgery study has biased rows or a planted word; expected one.")
        if not self.positive:
            raise ValueError("positive is empty; expected the names of one or more classes.")
        return self
