"""What a surgery study shows: the parts of the gaps, the path of the cut, groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lexical_sae.evaluation.bootstrap import mean_estimate
from lexical_sae.model.lexical_sae import LexicalSAE
from lexical_sae.report.finding import Cell, Curve, Estimate, Finding, FindingTable
from lexical_sae.studies.surgery_subject import SurgerySubject
from lexical_sae.surgery.comparison import Compared, Gaps
from lexical_sae.surgery.effect import after_removal
from lexical_sae.surgery.fairness import size_estimate
from lexical_sae.surgery.front import Step, candidate_words
from lexical_sae.surgery.gap import GapParts

SHOWN = 12  # words of a gap in the report


def decomposition(parts: Sequence[GapParts], model: LexicalSAE) -> Finding:
    """The groups with the widest gaps in the margin, and the words that make them."""
    assert model.dictionary is not None
    rows: list[tuple[Cell, ...]] = []
    for part in sorted(parts, key=lambda one: -one.difference)[:SHOWN]:
        top = [f"{model.dictionary.words[v]} {value:+.2f}" for v, value in part.top(5)]
        counts = (part.rows, part.flagged, 100 * part.fpr_gap)
        rows.append((part.group, *counts, part.difference, ", ".join(top)))
    columns = (
        *("group", "harmless rows", "flagged", "FPR gap, points"),
        *("wider margin by", "largest parts"),
    )
    wider = [part.wider for part in parts]
    words: list[tuple[Cell, ...]] = [
        (model.dictionary.words[v], sum(max(0.0, float(one[v])) for one in wider) / len(wider))
        for v in candidate_words(wider, limit=SHOWN)
    ]
    return Finding(
        tables=(
            FindingTable("Groups with the widest gaps in the margin", columns, tuple(rows)),
            FindingTable("Words behind all gaps together", ("word", "mean part"), tuple(words)),
        ),
        notes=(
            "harmless rows of the group against harmless rows outside it; the parts of all words "
            "and the bias add up to the difference exactly",
        ),
    )


@dataclass(frozen=True)
class Point:
    """Gap and accuracy on rows that no word was chosen on, with so many words of the path gone."""

    word: str  # the last of them
    gap: Estimate
    accuracy: Estimate


def front_points(study: SurgerySubject, path: Sequence[Step], gaps: Gaps) -> list[Point]:
    """From none of the words to all of them."""
    assert study.model.dictionary is not None
    found = []
    for count in range(len(path) + 1):
        gone = [step.coordinate for step in path[:count]]
        gap = size_estimate(gaps.draws(after_removal(study.measured.state, gone).logits))
        right = after_removal(study.test.state, gone).predicted == study.test.labels
        accuracy = mean_estimate(right.double().numpy(), gaps.seed)
        found.append(Point(study.model.dictionary.words[gone[-1]] if gone else "–", gap, accuracy))
    return found


def front(points: Sequence[Point]) -> Finding:
    """The path as a table, and those of its points that no other beats as a curve."""
    best = pareto([(one.gap.value or 0.0, one.accuracy.value or 0.0) for one in points])
    rows: list[tuple[Cell, ...]] = [
        (k, one.word, *_points(one.gap), *_points(one.accuracy), "yes" if k in best else "no")
        for k, one in enumerate(points)
    ]
    lines: dict[str, tuple[tuple[float, float], ...]] = {}
    for name, bound in (("mean FPR gap", "value"), ("95 % from", "low"), ("95 % to", "high")):
        pairs = [(points[k].accuracy.value, getattr(points[k].gap, bound)) for k in best]
        lines[name] = tuple(sorted((100 * x, 100 * y) for x, y in pairs if x and y is not None))
    curve = Curve("Gap against accuracy", "task accuracy, %", "mean FPR gap, points", lines)
    alone = len({points[k].accuracy.value for k in best}) < 2  # a point is no curve
    columns = (
        *("words", "last word", "mean FPR gap, points", "from", "to"),
        *("task accuracy, %", "from ", "to ", "on the front"),
    )
    return Finding(
        tables=(FindingTable("One word after the other", columns, tuple(rows)),),
        curves=() if alone else (curve,),
        notes=(
            "words were chosen on other rows than these",
            "95 % intervals; rows that differ only in the group they name are resampled together",
            "on the front: no other number of words is better in one and as good in the other",
            *(("one number of words beats all others, so there is no curve",) if alone else ()),
        ),
    )


def pareto(points: Sequence[tuple[float, float]]) -> list[int]:
    """Those of the points (gap, accuracy) that no other is better than in one and as good in the
    other; of equal points the first."""
    return [
        k
        for k, (gap, accuracy) in enumerate(points)
        if not any(
            other_gap <= gap
            and other_accuracy >= accuracy
            and ((other_gap, other_accuracy) != (gap, accuracy) or j < k)
            for j, (other_gap, other_accuracy) in enumerate(points)
        )
    ]


def groups_table(compared: Sequence[Compared]) -> FindingTable:
    """Each group before and after the cut."""
    before, after = compared[0].bias.groups, compared[1].bias.groups
    rows: list[tuple[Cell, ...]] = []
    for old, new in zip(before, after, strict=True):
        gaps = [None if g.fpr_gap.value is None else 100 * g.fpr_gap.value for g in (old, new)]
        aucs = [group.bpsn_auc.value for group in (old, new)]
        rows.append((old.name, old.rows, *gaps, *aucs, old.verdict, new.verdict))
    rows.sort(key=lambda row: -abs(float(row[2] or 0)))
    columns = ("group", "rows", "FPR gap before, points", "after", "BPSN AUC before", "after ")
    return FindingTable("Groups", (*columns, "before", "after the cut"), tuple(rows))


def _points(found: Estimate) -> list[float | None]:
    return [None if v is None else 100 * v for v in (found.value, found.low, found.high)]
