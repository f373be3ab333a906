"""Arms side by side: means over seeds with intervals, and paired tests against one of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from lexical_sae.evaluation.bootstrap import (
    Difference,
    Floats,
    runs_difference,
    runs_estimate,
)
from lexical_sae.report.finding import Cell as Shown
from lexical_sae.report.finding import Estimate, FindingTable
from lexical_sae.report.shown import percent
from lexical_sae.studies.cells import short_name
from lexical_sae.studies.grid import Outcome
from lexical_sae.studies.places import place_of

NUMBERS = {
    "f1": ("F1 of entities, %", 100.0),
    "open_words": ("open words", 1.0),
    "circuit_agreement": ("kept by the circuit, %", 100.0),
    "class_cosine": ("cosine of classes", 1.0),
    "removal_error": ("error of removal", 1.0),
    "removal_correlation": ("correlation of removal", 1.0),
    "seconds": ("seconds of training", 1.0),
}
# beneath every table of arms
NOTE = (
    "An interval (95 %) is over rows; with several seeds over seeds and rows, both drawn anew, the "
    "same rows for all seeds. p is that of a sign-flip test over rows of the mean over seeds: it "
    "asks whether these very runs differ, not whether those of other seeds would. Of a "
    "tagger accuracy and its differences count tags, and a row is a sentence."
)


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
        """[seeds, rows]: 1 where a row is right, else 0."""
        return right_rows(self.finished[seed].found["right"] for seed in seeds)

    @property
    def tags(self) -> Floats | None:
        """[rows]: the tags of each sentence, None of a classifier."""
        found = [one.found.get("tags") for one in self.finished.values()]
        return np.array(found[0], dtype=np.float64) if found and found[0] else None

    def tags_right(self, seeds: Sequence[int]) -> Floats:
        """[seeds, rows]: how many of them are right."""
        counts = [self.finished[s].found["tags_right"] for s in seeds]
        return np.array(counts, dtype=np.float64)

    def accuracy(self) -> Estimate:
        """The mean over seeds, its interval over seeds and rows. Of a tagger it counts tags, whole
        sentences are resampled: their words stand and fall together."""
        if not self.finished:
            return Estimate(None, why="no run finished")
        if self.tags is not None:
            return runs_estimate(self.tags_right(list(self.finished)), self.tags)
        if self.mean("f1") is not None:  # a dense twin's sentences are not read
            return Estimate(self.mean("accuracy"))
        return runs_estimate(self.right(list(self.finished)))


def right_rows(marks: Iterable[str]) -> Floats:
    """[seeds, rows] of strings that have a 1 or a 0 for every row."""
    return np.array([[mark == "1" for mark in one] for one in marks], dtype=np.float64)


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


def difference(arm: Arm, other: Arm) -> Difference | None:
    """None where they have no finished seed in common, or no rows to pair. It is the difference of
    what `accuracy` tells: of taggers it counts tags."""
    seeds = sorted(set(arm.finished) & set(other.finished))
    if not seeds:
        return None
    if arm.tags is not None and other.tags is not None and np.array_equal(arm.tags, other.tags):
        return runs_difference(arm.tags_right(seeds), other.tags_right(seeds), arm.tags)
    if arm.mean("f1") is not None or other.mean("f1") is not None:
        return None
    return runs_difference(arm.right(seeds), other.right(seeds))


def in_words(found: Difference) -> str:
    """With its interval, what that is over, and what p is of."""
    over = f"{found.seeds} seeds and rows" if found.seeds > 1 else "rows of one seed"
    return (
        f"{100 * found.value:+.1f} points of accuracy ({100 * found.low:+.1f} to "
        f"{100 * found.high:+.1f} over {over}; sign-flip test over rows: p {found.p:.2g})"
        + (", which may be chance" if found.may_be_chance else "")
    )


def arms_table(
    title: str, arms: Sequence[Arm], reference: str | None = None, *, heading: str = "arm"
) -> FindingTable:
    """A row for each arm; with a reference, its differences from that arm on the same dataset and
    backbone."""
    of = {place_of(arm): arm for arm in arms if arm.name == reference}
    several = len(set(map(place_of, arms))) > 1
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
                percent(arm.spread()),
                *(_against(arm, of.get(place_of(arm))) if reference else ()),
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
    return tuple(percent(value) for value in (found.value, found.low, found.high))


def _scaled(value: float | None, by: float) -> float | None:
    return None if value is None else by * value
