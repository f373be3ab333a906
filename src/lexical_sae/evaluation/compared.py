"""Step 6: explainers side by side, on the same decisions, judged by the same curves."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lexical_sae.evaluation.bootstrap import mean_estimate, paired_p_value
from lexical_sae.evaluation.perturbation import (
    FRACTIONS,
    Floats,
    Game,
    Limits,
    Masks,
    Removal,
    falling,
    limits_tried,
    removal,
)
from lexical_sae.report.finding import Cell, FindingTable
from lexical_sae.report.shown import percent

Bools = NDArray[np.bool_]
Scorer = Callable[[], Floats]
Keeps = Callable[[Masks], Bools]  # masks [m, n] to whether the label is still decided [m]
TOP = 5  # words that are removed at once
AGAINST = "p against "
NAOPC = "NAOPC"
TRIED = "NAOPC of the orders tried"  # its limits depend on the explainers: of one contest only
SAME = 1e-9  # scores of two explainers that are one


@dataclass(eq=False)
class Contest:
    """What each explainer reached, text by text; None where it was not asked or nothing is better.

    `first` names the explainer that the others are compared with; `same_as` the one whose numbers
    some of them should have, `first` unless given.
    """

    first: str
    same_as: str = ""
    naopc: dict[str, list[float | None]] = field(default_factory=dict)
    comprehensiveness: dict[str, list[float | None]] = field(default_factory=dict)
    sufficiency: dict[str, list[float | None]] = field(default_factory=dict)
    seconds: dict[str, list[float | None]] = field(default_factory=dict)
    lost: dict[str, list[float | None]] = field(default_factory=dict)  # without the top words
    flipped: dict[str, list[float | None]] = field(default_factory=dict)
    apart: dict[str, float] = field(default_factory=dict)  # largest difference from `same_as`
    texts: int = 0
    searched: bool = True  # whether limits were given for every decision

    def add(
        self,
        game: Game,
        limits: Limits | None,
        scorers: Mapping[str, Scorer],
        keeps: Keeps | None = None,
    ) -> None:
        """One decision; a scorer that is left out of `scorers` sits this text out. With `keeps`
        it is also seen whether another label wins without the top words.

        Without limits NAOPC is measured between the worst and the best order tried: those of all
        scorers and their reverses, which cost nothing more. It then ranks these scorers and is
        not to be compared with that of other scorers or of another game.
        """
        found: dict[str, Floats] = {}
        curves: dict[str, Removal] = {}
        self.searched = self.searched and limits is not None
        for name, scorer in scorers.items():
            start = time.perf_counter()
            found[name] = np.asarray(scorer(), dtype=np.float64)
            self._put(self.seconds, name, time.perf_counter() - start)
            curves[name] = removal(game, falling(found[name]))
            if self.original in found:
                difference = float(np.abs(found[name] - found[self.original]).max(initial=0.0))
                self.apart[name] = max(self.apart.get(name, 0.0), difference)
        between = limits if limits is not None else limits_tried(list(curves.values()))
        for name, curve in curves.items():
            self._put(self.naopc, name, between.normalised(curve.aopc))
            bins = [curve.comprehensiveness(fraction) for fraction in FRACTIONS]
            self._put(self.comprehensiveness, name, float(np.mean(bins)))
            bins = [curve.sufficiency(fraction) for fraction in FRACTIONS]
            self._put(self.sufficiency, name, float(np.mean(bins)))
            top = min(TOP, curve.n)
            self._put(self.lost, name, float(curve.without[0] - curve.without[top]))
            if keeps is not None:
                left = np.ones((1, curve.n), dtype=np.bool_)
                left[0, falling(found[name])[:top]] = False
                self._put(self.flipped, name, float(not keeps(left)[0]))
        self.texts += 1

    @property
    def original(self) -> str:
        return self.same_as or self.first

    def _put(self, column: dict[str, list[float | None]], name: str, value: float | None) -> None:
        values = column.setdefault(name, [])
        values += [None] * (self.texts - len(values))
        values.append(value)

    def pairs(self, column: dict[str, list[float | None]], name: str) -> tuple[Floats, Floats]:
        """The values of `name` and of the first explainer, on the texts that have both."""
        both = [
            (a, b)
            for a, b in zip(column[name], column[self.first], strict=False)
            if a is not None and b is not None
        ]
        return np.array([a for a, _ in both]), np.array([b for _, b in both])

    def table(self, title: str) -> FindingTable:
        """A row for each explainer, the best NAOPC first; p is that of a paired test against the
        first explainer, on the texts that both explained."""
        rows: list[tuple[Cell, ...]] = []
        for name in self.naopc:
            values = _known(self.naopc[name])
            estimate = mean_estimate(values)
            own, reference = self.pairs(self.naopc, name)
            same = name != self.original and self.apart.get(name, 1.0) <= SAME
            rows.append(
                (
                    f"{name} (the same numbers as {self.original})" if same else name,
                    len(_known(self.seconds[name])),
                    estimate.value,
                    estimate.low,
                    estimate.high,
                    None if name == self.first else paired_p_value(own, reference),
                    _mean(self.comprehensiveness[name]),
                    _mean(self.sufficiency[name]),
                    1000 * (_mean(self.seconds[name]) or 0.0),
                    float(own.mean() - reference.mean()) if len(own) else None,
                )
            )
        rows.sort(key=lambda row: -(row[2] if isinstance(row[2], float) else -1.0))
        columns = (
            *("explainer", "decisions", NAOPC if self.searched else TRIED, "from", "to"),
            f"{AGAINST}{self.first}",
            *("comprehensiveness", "sufficiency", "ms per text", f"minus {self.first}, same texts"),
        )
        return FindingTable(title, columns, tuple(rows))

    def removability(self, of: str) -> FindingTable:
        """What is left of the decision without each explainer's top words."""
        rows: list[tuple[Cell, ...]] = []
        for name, flips in self.flipped.items():
            share = mean_estimate(_known(flips))
            rows.append(
                (
                    *(name, len(_known(flips)), percent(share.value), percent(share.low)),
                    *(percent(share.high), _mean(self.lost[name])),
                    1000 * (_mean(self.seconds[name]) or 0.0),
                )
            )
        rows.sort(key=lambda row: -(row[2] if isinstance(row[2], float) else -1.0))
        columns = (
            *("explainer", "texts", "decisions flipped, %", "from", "to"),
            *("probability lost", "ms per text"),
        )
        return FindingTable(removability_title(of), columns, tuple(rows))

    def ahead(self) -> dict[str, float]:
        """Explainers whose mean NAOPC is above that of the first on the texts of both, with p."""
        found = {}
        for name in self.naopc:
            own, reference = self.pairs(self.naopc, name)
            if len(own) and own.mean() > reference.mean() + SAME:
                found[name] = paired_p_value(own, reference)
        return found


def ahead_line(table: FindingTable) -> str:
    """`Contest.ahead` in words, read from its table: who has a higher mean NAOPC than the first
    explainer on the texts that both explained. Means over different texts say nothing of that."""
    first = table.columns[5].removeprefix(AGAINST)
    known = [row for row in table.rows if isinstance(row[9], float)]
    if not known:
        return f"NAOPC is undefined for every decision, so none can be compared with {first}"
    ahead = [
        f"{row[0]} (by {row[9]:.2g}, p {row[5]:.2g})"
        for row in known
        if isinstance(row[9], float) and row[9] > SAME and isinstance(row[5], float)
    ]
    if not ahead:
        return f"none is ahead of {first} in mean NAOPC on the texts of both"
    return f"ahead of {first} in mean NAOPC on the texts of both: {', '.join(ahead)}"


def removability_title(title: str) -> str:
    return f"{title}, without their top {TOP} words"


def _known(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _mean(values: Sequence[float | None]) -> float | None:
    known = _known(values)
    return sum(known) / len(known) if known else None
