"""The rows of a surgery study: what is trained on, chosen on and measured on, apart."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from lexical_sae.evaluation.held_out import same_labels
from lexical_sae.studies.cell_data import some_rows
from lexical_sae.studies.planted import plant, plant_everywhere
from lexical_sae.studies.surgery_config import Biased, SurgeryConfig
from lexical_sae.surgery.groups import (
    Groups,
    frames_of,
    groups_of_column,
    groups_of_shares,
    groups_of_terms,
)
from lexical_sae.surgery.rates import Frames
from lexical_sae.surgery.word_lists import load_word_list
from lexical_sae.text.dataset import TextDataset
from lexical_sae.text.registry import load_splits
from lexical_sae.training.config import RunConfig
from lexical_sae.training.run import Data, load_data


@dataclass(frozen=True, eq=False)
class StudyData:
    """`task` is trained on; words are chosen on `choosing` (with groups) and the task's validation
    rows; everything shown is measured on `measured` and the task's test rows."""

    task: Data
    choosing: TextDataset
    measured: TextDataset
    concept: dict[str, tuple[str, ...]]  # the words whose mention is the concept, by group
    biased: Biased | None = None  # how rows fall into groups; none: by the concept

    def groups(self, data: TextDataset) -> Groups:
        if self.biased is None:
            return groups_of_terms(data.texts, self.concept)
        if self.biased.column is not None:
            return groups_of_column(data, self.biased.column)
        if self.biased.columns is not None:
            return groups_of_shares(data, self.biased.columns)
        assert self.biased.terms is not None
        return groups_of_terms(data.texts, load_word_list(self.biased.terms))

    def frames(self, data: TextDataset) -> Frames:
        """Rows that belong together: the same text, but for the group that it names."""
        return _frames(data, self.biased)


def load_study_data(config: SurgeryConfig, run: RunConfig) -> StudyData:
    biased = config.biased
    # before the task's rows, since these may be a long download
    wanted = () if biased is None else (biased.choose, biased.split)
    parts = [_split(biased, split) for split in wanted if biased is not None and split is not None]
    task = task_rows(config, run, load_data(run))
    if config.planted is not None:
        return _planted(config, task)
    assert biased is not None
    names = list(task.train.label_names)
    if biased.choose is None:
        if biased.dataset == run.dataset:
            raise ValueError(
                f"biased.dataset is {biased.dataset}, the task's own, and choose is null: words "
                "would be chosen on rows that the task is measured on. Give choose another split, "
                "for instance validation."
            )
        rows = same_labels(parts[0], names)
        choosing, measured = _halves(rows, _frames(rows, biased), biased.rows, config.seed)
    else:
        choosing, measured = (
            some.select(sorted(_shuffled(len(some), config.seed)[: biased.rows]))
            for some in (same_labels(part, names) for part in parts)
        )
    concept: dict[str, tuple[str, ...]] = {}
    for name in config.concept_lists:
        concept |= load_word_list(name)
    return StudyData(task, choosing, measured, concept, biased)


def task_rows(config: SurgeryConfig, run: RunConfig, found: Data) -> Data:
    """The task's splits, with no more rows to choose and to measure on than the study wants."""
    if found.train.task != "classification" or found.validation is None or found.test is None:
        raise ValueError(
            f"{run.dataset} has no train, validation and test split of labelled texts; a surgery "
            "study needs all three."
        )
    held = [some_rows(part, config.held_out_rows) for part in (found.validation, found.test)]
    return Data(found.train, *held)


def _frames(data: TextDataset, biased: Biased | None) -> Frames:
    column = None if biased is None else biased.column
    return frames_of(data.texts, None if column is None else data.extra.get(column))


def _halves(
    data: TextDataset, frames: Frames, rows: int, seed: int
) -> tuple[TextDataset, TextDataset]:
    """Two parts of up to `rows` rows that share no frame."""
    members: dict[int, list[int]] = {}
    for row, frame in enumerate(frames.tolist()):
        members.setdefault(frame, []).append(row)
    half = min(rows, len(data) // 2)
    first: list[int] = []
    second: list[int] = []
    for frame in _shuffled(len(members), seed):
        (first if len(first) < half else second).extend(members[frame])
    return data.select(sorted(first[:half])), data.select(sorted(second[:half]))


def _split(biased: Biased, split: str) -> TextDataset:
    splits = load_splits(biased.dataset)
    if split not in splits:
        known = ", ".join(splits)
        raise ValueError(f"{biased.dataset} has no split {split!r}; expected one of {known}.")
    found, names = splits[split], biased.labels or {}
    strange = [name for name in names if name not in found.label_names]
    if strange:
        known = ", ".join(found.label_names)
        raise ValueError(f"biased.labels names {strange[0]!r}; {biased.dataset} has {known}.")
    return replace(found, label_names=tuple(names.get(name, name) for name in found.label_names))


def _shuffled(count: int, seed: int) -> list[int]:
    order = list(range(count))
    random.Random(seed).shuffle(order)
    return order


def _planted(config: SurgeryConfig, task: Data) -> StudyData:
    """Training rows have the shortcut, the measured ones the word anywhere; what a cut costs is
    weighed on validation rows without it, since with it the shortcut would pay."""
    planted, seed = config.planted, config.seed
    assert planted is not None
    assert task.validation is not None
    assert task.test is not None
    spoilt = Data(plant(task.train, planted, seed), task.validation, task.test)
    choosing = plant_everywhere(task.validation, planted, seed + 2)
    measured = plant_everywhere(task.test, planted, seed + 3)
    marked: dict[str, tuple[str, ...]] = {planted.word: (planted.word,)}
    return StudyData(spoilt, choosing, measured, marked)
