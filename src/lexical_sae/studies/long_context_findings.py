"""What a long-context study shows: accuracy by length and place, pointing, and the hay alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lexical_sae.evaluation.bootstrap import drawn_estimate, mean_estimate
from lexical_sae.report.finding import Cell, Curve, Estimate, Finding, FindingTable
from lexical_sae.studies.above_filler import right_above
from lexical_sae.studies.long_context_reading import (
    ARMS,
    Decisions,
    Floats,
    Pointing,
    by_needle,
    pointing,
)
from lexical_sae.studies.needles import ALONE, Haystack


@dataclass(frozen=True, eq=False)
class Measured:
    """All texts of one length and what became of them."""

    length: int
    hay: tuple[Haystack, ...]
    decisions: Decisions
    filler: Decisions | None  # of texts as long without a needle; none for needles alone
    pointing: tuple[Pointing, ...]

    @property
    def name(self) -> Cell:
        return "needle alone" if self.length == ALONE else self.length

    def accuracy(self, arm: str, seed: int, place: float | None = None) -> Estimate:
        """Over needles; at one of the places asked for, or at all."""
        return mean_estimate(self._right(arm, place), seed)

    def standing(self, asked: float) -> tuple[int, float | None]:
        """How many texts have their needle at the place asked for, and where it stands in fact:
        the mean share of the filler before it."""
        found = [one.place for one in self.hay if one.asked == asked]
        return len(found), float(np.mean(found)) if found else None

    def above_filler(self, arm: str, seed: int) -> Estimate:
        """The accuracy of what the logits are above those of filler alone, over needles and filler
        texts."""
        if self.filler is None:
            return Estimate(None, why="there is no filler")
        value = float(self._right(arm, above=self.filler).mean())
        return drawn_estimate(value, self._drawn(arm, self.filler, seed), seed)

    def ahead(self, first: str, second: str, seed: int, above: Decisions | None = None) -> Estimate:
        """How far the first arm's accuracy is above the second's, needle by needle; of what is
        above filler, also with the same filler texts for both."""
        apart = self._right(first, above=above) - self._right(second, above=above)
        if above is None:
            return mean_estimate(apart, seed)
        drawn = self._drawn(first, above, seed) - self._drawn(second, above, seed)
        return drawn_estimate(float(apart.mean()), drawn, seed)

    def _drawn(self, arm: str, above: Decisions, seed: int) -> Floats:
        return right_above(self.decisions, above, arm, self.hay, seed)

    def _right(
        self, arm: str, place: float | None = None, above: Decisions | None = None
    ) -> Floats:
        """[needles]: share of the places at which each needle is found."""
        rows = [i for i, one in enumerate(self.hay) if place is None or one.asked == place]
        labels = np.array([one.label for one in self.hay])
        right = (self.decisions.predicted(arm, above) == labels).astype(np.float64)
        return by_needle(right[rows], [self.hay[i] for i in rows])

    def estimates(self, seed: int) -> dict[str, Estimate]:
        """Where our reasons stand, and how many words are open."""
        values = {
            "needle_words": [one.needle_words for one in self.hay],
            "needle_share": [one.share for one in self.pointing],
            "top_in_needle": [one.top for one in self.pointing],
            "open_words": self.decisions.open_words.tolist(),
        }
        return {
            name: mean_estimate(by_needle(each, self.hay), seed) for name, each in values.items()
        }


def measured(hay: Sequence[Haystack], decisions: Decisions, filler: Decisions | None) -> Measured:
    told = tuple(
        pointing(one, where) for one, where in zip(decisions.explanations, hay, strict=True)
    )
    return Measured(hay[0].length, tuple(hay), decisions, filler, told)


def by_length(found: Sequence[Measured], seed: int) -> Finding:
    rows: list[tuple[Cell, ...]] = []
    titles = ("Accuracy against length", "Accuracy above filler against length")
    lines: dict[str, dict[str, list[tuple[float, float]]]] = {
        title: {arm: [] for arm in ARMS} for title in titles
    }
    for one in found:
        for arm in ARMS:
            both = (one.accuracy(arm, seed), one.above_filler(arm, seed))
            each = 1000 * one.decisions.seconds[arm] / len(one.hay)
            cells = [cell for value in both for cell in _percent(value)]
            rows.append((one.name, arm, len(one.hay), *cells, each))
            for title, value in zip(titles, both, strict=True):
                if one.length != ALONE and value.value is not None:
                    lines[title][arm].append((float(one.length), 100 * value.value))
    columns = (
        *("words", "model", "texts", "accuracy, %", "from", "to"),
        *("above filler, %", "from ", "to ", "ms per text"),
    )
    return Finding(
        tables=(FindingTable("Accuracy by length", columns, tuple(rows)),),
        curves=tuple(
            Curve(
                title,
                "words of the text",
                "accuracy, %",
                {arm: tuple(points) for arm, points in by_arm.items()},
            )
            for title, by_arm in lines.items()
        ),
        notes=(
            "95 % intervals over needles; the places of one needle are resampled together",
            "above filler: accuracy of the logits less the mean logits of filler alone of the same "
            "length, so that leaning towards one class whatever the text counts for nothing; its "
            "intervals are over needles and filler texts, drawn independently",
            "cut: only the first max_tokens of a text are read; ours in windows includes the "
            "explanation of every text",
        ),
    )


def by_place(found: Sequence[Measured], places: Sequence[float], seed: int) -> Finding:
    rows: list[tuple[Cell, ...]] = []
    for one in found:
        for place in places if one.length != ALONE else ():
            values = [one.accuracy(arm, seed, place) for arm in ARMS]
            here = [
                p for p, where in zip(one.pointing, one.hay, strict=True) if where.asked == place
            ]
            share = [p.share for p in here if not np.isnan(p.share)]
            pointed = 100 * float(np.mean(share)) if share else None
            cells = [_percent(value)[0] for value in values]
            texts, stands = one.standing(place)
            at = (100 * place, None if stands is None else 100 * stands, texts)
            rows.append((one.length, *at, *cells, *_percent(values[0])[1:], pointed))
    columns = (
        *("words", "asked for, %", "needle at, %", "texts", *ARMS, f"{ARMS[0]}, from", "to"),
        "evidence from the needle, %",
    )
    note = (
        "needle at: the mean share of the filler's words that stand before it; short filler has "
        "few sentences, and a needle that would stand at the same place twice is counted once, at "
        "the nearer of the places asked for"
    )
    table = FindingTable("Accuracy by place, %", columns, tuple(rows))
    return Finding(tables=(table,), notes=(note,))


def where_reasons_stand(found: Sequence[Measured], seed: int) -> Finding:
    rows: list[tuple[Cell, ...]] = []
    lines: dict[str, list[tuple[float, float]]] = {
        "evidence from the needle": [],
        "top word from the needle": [],
        "words that are the needle's": [],
    }
    for one in found:
        values = one.estimates(seed)
        share, top, own = (
            values[name] for name in ("needle_share", "top_in_needle", "needle_words")
        )
        words = values["open_words"]
        rows.append(
            (
                *(one.name, _percent(own)[0], *_percent(share), *_percent(top)),
                *(words.value, words.low, words.high),
            )
        )
        if one.length != ALONE:
            for line, value in zip(lines.values(), (share, top, own), strict=True):
                if value.value is not None:
                    line.append((float(one.length), 100 * value.value))
    columns = (
        *("words", "words of the needle, %", "evidence from the needle, %", "from", "to"),
        *("top word from the needle, %", "from ", "to ", "open words", "from  ", "to  "),
    )
    return Finding(
        tables=(FindingTable("Where the reasons stand (ours, windows)", columns, tuple(rows)),),
        curves=(
            Curve(
                "What the reasons point at",
                "words of the text",
                "%",
                {name: tuple(points) for name, points in lines.items()},
            ),
        ),
        notes=(
            "evidence: positive contributions to the predicted label, right or wrong, by the word "
            "of the text that opened each",
        ),
    )


def hay_alone(found: dict[int, Decisions], labels: Sequence[str]) -> Finding:
    """How neutral the filler is to each model: near one class always is a bias that needles must
    overcome."""
    rows: list[tuple[Cell, ...]] = []
    for length, decisions in found.items():
        for arm in ARMS:
            said = np.bincount(decisions.predicted(arm), minlength=len(labels))
            opened = float(decisions.open_words.mean()) if arm == ARMS[0] else None
            rows.append((length, arm, *(100 * said / said.sum()).tolist(), opened))
    columns = ("words", "model", *(f"{name}, %" for name in labels), "open words")
    return Finding(tables=(FindingTable("Filler without a needle", columns, tuple(rows)),))


def _percent(found: Estimate) -> list[float | None]:
    return [None if v is None else 100 * v for v in (found.value, found.low, found.high)]
