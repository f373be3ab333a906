"""Arms side by side: means over seeds with intervals, and paired tests against one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lexical_sae.evaluation.bootstrap import (
    Floats,
    mean_estimate,
    paired_p_value,
    ratio_estimate,
)
from lexical_sae.report.finding import Cell as Shown
from lexical_sae.report.finding import Estimate, FindingTable
from lexical_sae.studies.cells import short_name
from lexical_sae.studies.grid import Outcome

NUMBERS = {
    "f1": ("F1 of entities, %", 100.0),
    "open_words": ("open words", 1.0),
    "circuit_agreement": ("kept by the circuit, %", 100.0),
    "class_cosine": ("cosine of classes", 1.0),
    "removal_error": ("error of removal", 1.0),
    "removal_correlation": ("correlation of removal", 1.0),
    "seconds": ("seconds of training", 1.0),
}


@dataclass(frozen=True, eq=False)
class Arm:
    """The finished cells of an arm on one dataset and backbone."""

    name: str
    dataset: str
    backbone: str
    finished: dict[int, Outcome]  # by seed
    failed: int

    def mean(self, measure: str) -> float | None:
        """Over seeds."""
        found = [one.found.get(measure) for one in self.finished.values()]
        known = [float(value) for value in found if value is not None]
        return sum(known) / len(known) if known else None

    def spread(self) -> float | None:
        """The most by which two seeds differ in accuracy."""
        found = [one.found["accuracy"] for one in self.finished.values()]
        return max(found) - min(found) if len(found) > 1 else None

    def right(self, seeds: Sequence[int]) -> Floats:
        """[rows]: how often each row is right, over some seeds."""
        marks = [[mark == "1" for mark in self.finished[s].found["right"]] for s in seeds]
        mean: Floats = np.mean(np.array(marks, dtype=np.float64), axis=0)
        return mean

    @property
    def tags(self) -> Floats | None:
        """[rows]: the tags of each sentence, None of a classifier."""
        found = [one.found.get("tags") for one in self.finished.values()]
        return np.array(found[0], dtype=np.float64) if found and found[0] else None

    def tags_right(self, seeds: Sequence[int]) -> Floats:
        """[rows]: how many of them are right, over some seeds."""
        counts = [self.finished[s].found["tags_right"] for s in seeds]
        mean: Floats = np.mean(np.array(counts, dtype=np.float64), axis=0)
        return mean

    def accuracy(self) -> Estimate:
        """The mean over seeds, its interval over resampled rows. Of a tagger it counts tags, whole
        sentences are resampled: their words stand and fall together."""
        if not self.finished:
            return Estimate(None, why="no run finished")
        if self.tags is not None:
            return ratio_estimate(self.tags_right(list(self.finished)), self.tags)
        if self.mean("f1") is not None:  # a dense twin's sentences are not read
            return Estimate(self.mean("accuracy"))
        return mean_estimate(self.right(list(self.finished)))


def arms_of(outcomes: Sequence[Outcome]) -> list[Arm]:
    """In the order of the grid."""
    groups: dict[tuple[str, str, str], list[Outcome]] = {}
    for one in outcomes:
        key = (one.cell.dataset, one.cell.backbone, one.cell.arm)
        groups.setdefault(key, []).append(one)
    return [
        Arm(
            name,
            dataset,
            backbone,
            {one.cell.seed: one for one in group if not one.failed},
            sum(bool(one.failed) for one in group),
        )
        for (dataset, backbone, name), group in groups.items()
    ]


@dataclass(frozen=True)
class Difference:
    """Accuracy of an arm minus that of another, on the same rows and seeds."""

    value: float
    low: float
    high: float
    p: float


def difference(arm: Arm, other: Arm) -> Difference | None:
    """None where they have no finished seed in common, or no rows to pair. It is the difference of
    what `accuracy` tells: of taggers it counts tags."""
    seeds = sorted(set(arm.finished) & set(other.finished))
    if not seeds:
        return None
    if arm.tags is not None and other.tags is not None and np.array_equal(arm.tags, other.tags):
        a, b = arm.tags_right(seeds), other.tags_right(seeds)
        found = ratio_estimate(a - b, arm.tags)
    else:
        a, b = arm.right(seeds), other.right(seeds)
        tagged = arm.mean("f1") is not None or other.mean("f1") is not None
        if tagged or not len(a) or a.shape != b.shape:
            return None
        found = mean_estimate(a - b)
    assert found.value is not None
    assert found.low is not None
    assert found.high is not None
    return Difference(found.value, found.low, found.high, paired_p_value(a, b))


def arms_table(
    title: str, arms: Sequence[Arm], reference: str | None = None, *, heading: str = "arm"
) -> FindingTable:
    """A row for each arm; with a reference, its differences from that arm on the same dataset and
    backbone: p is that of a two-sided sign-flip test over rows."""
    of = {(arm.dataset, arm.backbone): arm for arm in arms if arm.name == reference}
    several = len({(arm.dataset, arm.backbone) for arm in arms}) > 1
    measures = {
        name: shown
        for name, shown in NUMBERS.items()
        if any(arm.mean(name) is not None for arm in arms)
    }
    rows: list[tuple[Shown, ...]] = []
    for arm in arms:
        where: tuple[Shown, ...] = (arm.dataset, short_name(arm.backbone)) if several else ()
        rows.append(
            (
                *where,
                arm.name,
                len(arm.finished),
                *_percent(arm.accuracy()),
                _hundred(arm.spread()),
                *(_against(arm, of.get((arm.dataset, arm.backbone))) if reference else ()),
                *(_scaled(arm.mean(name), by) for name, (_, by) in measures.items()),
            )
        )
    compared = (f"minus {reference}", "from", "to", "p") if reference else ()
    columns = (
        *(("dataset", "backbone") if several else ()),
        *(heading, "seeds", "accuracy, %", "from", "to", "between seeds"),
        *(*compared, *(shown for shown, _ in measures.values())),
    )
    return FindingTable(title, columns, tuple(rows))


def _against(arm: Arm, other: Arm | None) -> tuple[Shown, ...]:
    found = None if other is None or arm is other else difference(arm, other)
    if found is None:
        return (None,) * 4
    return (100 * found.value, 100 * found.low, 100 * found.high, found.p)


def _percent(found: Estimate) -> tuple[Shown, ...]:
    if found.value is None:
        return ("failed", None, None)
    return tuple(_hundred(value) for value in (found.value, found.low, found.high))


def _hundred(value: float | None) -> float | None:
    return _scaled(value, 100.0)


def _scaled(value: float | None, by: float) -> float | None:
    return None if value is None else by * value
