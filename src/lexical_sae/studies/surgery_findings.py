"""What a surgery study shows: the parts of the gaps, the path of the cut, groups, sentences."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lexical_sae.model.lexical_sae import LexicalSAE
from lexical_sae.report.finding import Cell, Curve, Finding, FindingTable
from lexical_sae.studies.surgery_subject import SurgerySubject
from lexical_sae.surgery.comparison import Compared
from lexical_sae.surgery.effect import after_removal
from lexical_sae.surgery.fairness import DRAWS, FEWEST_ROWS, mean_fpr_gaps, size_estimate
from lexical_sae.surgery.front import Step, candidate_words
from lexical_sae.surgery.gap import GapParts, flagged_rows
from lexical_sae.surgery.rates import bootstrap_weights

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
    wider = [part.words for part in parts]
    words: list[tuple[Cell, ...]] = [
        (model.dictionary.words[v], sum(max(0.0, float(one[v])) for one in wider) / len(wider))
        for v in candidate_words(wider, SHOWN)
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


def front(study: SurgerySubject, path: Sequence[Step]) -> Finding:
    """Gap and accuracy on rows that no word was chosen on, after each cut."""
    assert study.model.dictionary is not None
    groups = study.data.groups(study.data.measured)
    gold = study.gold(study.measured)
    weights = bootstrap_weights(len(gold), DRAWS // 5, study.config.seed)
    rows: list[tuple[Cell, ...]] = []
    points: dict[str, list[tuple[float, float]]] = {"mean FPR gap": [], "from": [], "to": []}
    for count in range(len(path) + 1):
        gone = [step.coordinate for step in path[:count]]
        logits = after_removal(study.measured.state, gone).logits
        said = flagged_rows(logits, study.positive)
        gap = size_estimate(mean_fpr_gaps(said, gold, groups, weights))
        right = after_removal(study.test.state, gone).predicted == study.test.labels
        accuracy = 100 * float(right.double().mean())
        word = study.model.dictionary.words[gone[-1]] if gone else "–"
        values = [None if v is None else 100 * v for v in (gap.value, gap.low, gap.high)]
        rows.append((count, word, *values, accuracy))
        for name, value in zip(points, values, strict=True):
            if value is not None:
                points[name].append((accuracy, value))
    columns = ("words", "last word", "mean FPR gap, points", "from", "to", "task accuracy, %")
    lines = {name: tuple(sorted(found)) for name, found in points.items()}
    return Finding(
        tables=(FindingTable("One word after the other", columns, tuple(rows)),),
        curves=(Curve("Gap against accuracy", "task accuracy, %", "mean FPR gap, points", lines),),
        notes=("words were chosen on other rows than these", "95 % intervals over rows"),
    )


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


def summary(compared: Sequence[Compared], words: Sequence[str]) -> list[str]:
    """What came out, in sentences; what did not hold is said as plainly."""
    by_name = {one.name: one for one in compared}
    before, after = by_name["baseline"], by_name["surgery"]
    gaps = {name: _points(one.bias.mean_fpr_gap.value) for name, one in by_name.items()}
    points = {name: 100 * (one.accuracy.value or 0.0) for name, one in by_name.items()}
    lines = [
        f"Cut out: {', '.join(words) if words else 'nothing; no word narrows the gap'}.",
        f"The mean FPR gap goes from {shown(gaps['baseline'])} to {shown(gaps['surgery'])}, the "
        f"task's accuracy from {points['baseline']:.2f} to {points['surgery']:.2f} %.",
    ]
    erased = [name for name in by_name if name.startswith("LEACE")]
    if not erased:
        lines.append(
            f"LEACE is left out: fewer than {FEWEST_ROWS} training rows mention a group of the "
            "concept, or all do."
        )
    for name in erased:
        better = gaps["surgery"] < gaps[name] and points["surgery"] >= points[name]
        verdict = "surgery is ahead" if better else "surgery is not ahead of it"
        lines.append(f"{name}: gap {shown(gaps[name])}, accuracy {points[name]:.2f} %; {verdict}.")
    controls = [gaps[name] for name in gaps if name.startswith("random")]
    if controls:
        each = ", ".join(map(shown, controls))
        lines.append(f"Random words that are open as often leave a gap of {each}.")
    leaks = [
        f"{old.probe} {old.auc.value:.3f} before, {new.auc.value:.3f} after"
        for old, new in zip(before.leaks, after.leaks, strict=True)
        if old.auc.value is not None and new.auc.value is not None
    ]
    if leaks:
        lines.append(
            f"How well probes tell the concept from the open words (AUC; 0.5 is chance): "
            f"{'; '.join(leaks)}."
        )
    return lines


def _points(value: float | None) -> float:
    return math.nan if value is None else 100 * value


def shown(points: float) -> str:
    return "undefined (no group is large enough)" if math.isnan(points) else f"{points:.2f} points"
