"""What all studies that train have in common: datasets × backbones × arms × seeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field, field_validator, model_validator

from lexical_sae.studies.cells import Cell
from lexical_sae.studies.strict import StudyConfig
from lexical_sae.training.assignments import laid_over
from lexical_sae.training.batch_size import LARGEST
from lexical_sae.training.config import DEFAULT_BACKBONE, resolve_config
from lexical_sae.training.expectations import nearest_key, shown

Settings = dict[str, Any]

# what a run of a study gets from the study, and what to give instead
OF_THE_STUDY = {
    "seed": "expected seeds, the number of runs per arm",
    "train_rows": "it takes the first rows; expected train_rows: beside train",
    "dense_twin": "a study's arms say which run is a dense twin; expected it left out",
}


MISSING = object()


def known_names(names: list[str], known: Iterable[str]) -> list[str]:
    """The same, once all are known, there are some, and none is given twice."""
    known = list(known)
    for name in names:
        if name not in known:
            raise ValueError(f"{name!r} is not known; {nearest_key(name, known)}")
    if not names or len(set(names)) < len(names):
        raise ValueError(f"found {names}; expected one or more of {', '.join(known)}, each once.")
    return names


def refuse_given(settings: Settings, where: str, told: Mapping[str, str] = OF_THE_STUDY) -> None:
    """A setting that the study would overwrite is told, not dropped; `model.head` is one of
    `model`."""
    for name, instead in told.items():
        inner: Any = settings
        for key in name.split("."):
            inner = inner.get(key, MISSING) if isinstance(inner, Mapping) else MISSING
        if inner is not MISSING:
            raise ValueError(f"{where}.{name} is given; {instead}.")


def in_equal_batches(settings: Settings) -> Settings:
    """Of runs that are compared: none chooses its batch size by the memory that is free when its
    turn comes."""
    own = resolve_config(settings, where="train").settings
    return {**settings, "batch_size": own.batch_size or LARGEST}


class GridConfig(StudyConfig):
    """`train` holds for every run; `datasets` may add settings of their own to it."""

    train: Settings = Field(default_factory=dict)  # as `lexical-sae train` takes it
    datasets: dict[str, Settings] = Field(default_factory=dict)  # none: the one that `train` names
    backbones: list[str] = Field(default_factory=list)  # none: that of `train`
    of_the_arms: ClassVar[Mapping[str, str]] = {}  # what arms set, and what to give instead
    seeds: Annotated[int, Field(ge=1, le=100)] = 1  # runs of every arm
    train_rows: Annotated[int, Field(ge=10)] | None = None  # evenly spread; null: all
    held_out_rows: Annotated[int, Field(ge=10)] | None = None  # of validation and test; null: all

    @field_validator("datasets", mode="before")
    @classmethod
    def _by_name(cls, value: Any) -> Any:
        """A name, a list of names, or names with settings that differ from `train`."""
        if isinstance(value, str):
            return {value: {}}
        if isinstance(value, list) and all(isinstance(name, str) for name in value):
            if len(set(value)) < len(value):
                raise ValueError("datasets names a dataset twice; expected each once.")
            return {name: {} for name in value}
        if isinstance(value, Mapping):
            return {name: {} if given is None else given for name, given in value.items()}
        raise ValueError(
            f"datasets is {shown(value)}; expected a name, a list of names, or names with "
            "settings, such as {imdb: {max_length: 512}}."
        )

    @model_validator(mode="after")
    def _check(self) -> GridConfig:
        refuse_given(self.train, "train", {**OF_THE_STUDY, **self.of_the_arms})
        named = {
            "dataset": "it is named already",
            "backbone": "expected backbones: beside datasets",
        }
        for name, own in self.datasets.items():
            refuse_given(own, f"datasets.{name}", {**OF_THE_STUDY, **self.of_the_arms, **named})
        for name, given in (("datasets", "dataset"), ("backbones", "backbone")):
            if getattr(self, name) and given in self.train:
                raise ValueError(f"train.{given} and {name} are both given; expected one of them.")
        if not self.datasets and "dataset" not in self.train:
            raise ValueError("datasets is missing; expected the names of one or more datasets.")
        if len(set(self.backbones)) < len(self.backbones):
            raise ValueError("backbones names a backbone twice; expected each once.")
        for dataset in self.by_dataset():
            resolve_config(self.settings(dataset, self.by_backbone()[0], 0), where="train")
        return self

    def arms(self) -> dict[str, Settings]:
        """What each arm changes, by its name."""
        raise NotImplementedError

    def by_dataset(self) -> dict[str, Settings]:
        return self.datasets or {self.train["dataset"]: {}}

    def by_backbone(self) -> list[str]:
        return self.backbones or [self.train.get("backbone", DEFAULT_BACKBONE)]

    def settings(self, dataset: str, backbone: str, seed: int) -> Settings:
        """Of a run, before its arm changes anything."""
        named = {"dataset": dataset, "backbone": backbone, "seed": seed}
        return laid_over(laid_over(self.train, self.by_dataset()[dataset]), named)

    def cells(self) -> list[Cell]:
        """All runs; the arms in turn, so that a busy hour of the machine hits all alike."""
        return [
            Cell(
                dataset,
                backbone,
                arm,
                seed,
                laid_over(in_equal_batches(self.settings(dataset, backbone, seed)), changes),
            )
            for dataset in self.by_dataset()
            for backbone in self.by_backbone()
            for seed in range(self.seeds)
            for arm, changes in self.arms().items()
        ]
