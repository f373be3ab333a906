"""What a surgery study shows: the parts of the gaps, the path of the cut, groups, sentences."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from lexical_sae.model.lexical_sae import LexicalSAE
from lexical_sae.report.finding import Cell, Curve, Finding, FindingTable
from lexical_sae.studies.surgery_subject import SurgerySubject
from lexical_sae.surgery.comparison import Compared
from lexical_sae.surgery.effect import after_removal
from lexical_sae.surgery.fairness import DRAWS, FEWEST_ROWS, estimate, mean_fpr_gaps
from lexical_sae.surgery.front import Step, candidate_words
from lexical_sae.surgery.gap import GapParts, positive_scores
from lexical_sae.surgery.rates import drawn_weights

SHOWN = 12  # words of a gap in the report


def decomposition(parts: Sequence[GapParts], model: LexicalSAE) -> Finding:
    """The groups with the widest gaps in the margin, and the words that make them."""
    assert model.dictionary is not None
    rows: list[tuple[Cell, ...]] = []
    for part in sorted(parts, key=lambda one: -one.difference)[:SHOWN]:
        top = [f"{model.dictionary.words[v]} {value:+.2f}" for v, value in part.top(5)]
        rows.append((part.group, part.rows, part.difference, ", ".join(top)))
    columns = ("group", "false positives", "wider margin by", "largest parts")
    every = candidate_words([part.words for part in parts], SHOWN)
    total = sum((part.words.clamp(min=0) for part in parts), torch.zeros(len(model.dictionary)))
    words: list[tuple[Cell, ...]] = [
        (model.dictionary.words[v], float(total[v]) / max(len(parts), 1)) for v in every
    ]
    return Finding(
        tables=(
            FindingTable("Groups with the widest gaps in the margin", columns, tuple(rows)),
            FindingTable("Words behind all gaps together", ("word", "mean part"), tuple(words)),
        ),
        notes=(
            "the parts of all words and the bias add up to the difference exactly; contributions "
            "are those of false positives of the group against harmless rows outside it",
        ),
    )


def front(study: SurgerySubject, path: Sequence[Step]) -> Finding:
    """Gap and accuracy on rows that no word was chosen on, after each cut."""
    assert study.model.dictionary is not None
    groups = study.data.groups(study.data.measured)
    gold = study.gold(study.measured)
    itself = np.ones((1, len(gold)), dtype=np.float32)
    drawn = drawn_weights(len(gold), DRAWS // 5, study.config.seed)
    weights = np.concatenate([itself, drawn])
    rows: list[tuple[Cell, ...]] = []
    points: dict[str, list[tuple[float, float]]] = {"mean FPR gap": [], "from": [], "to": []}
    for count in range(len(path) + 1):
        gone = [step.coordinate for step in path[:count]]
        logits = after_removal(study.measured.state, gone).logits
        said = positive_scores(logits, study.positive) >= 0.5
        gap = estimate(mean_fpr_gaps(said, gold, groups, weights))
        right = after_removal(study.test.state, gone).predicted == study.test.labels
        accuracy = 100 * float(right.double().mean())
        word = study.model.dictionary.words[gone[-1]] if gone else "–"
        shown = [None if v is None else 100 * v for v in (gap.value, gap.low, gap.high)]
        rows.append((count, word, *shown, accuracy))
        for name, value in zip(points, shown, strict=True):
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
    gaps = {name: 100 * (one.bias.mean_fpr_gap.value or 0.0) for name, one in by_name.items()}
    points = {name: 100 * (one.accuracy.value or 0.0) for name, one in by_name.items()}
    lines = [
        f"Cut out: {', '.join(words) if words else 'nothing; no word narrows the gap'}.",
        f"The mean FPR gap goes from {gaps['baseline']:.2f} to {gaps['surgery']:.2f} points, the "
        f"task's accuracy from {points['baseline']:.2f} to {points['surgery']:.2f} %.",
    ]
    erased = [name for name in by_name if name.startswith("LEACE")]
    if not erased:
        lines.append(
            f"LEACE is left out: fewer than {FEWEST_ROWS} training rows mention a group of the "
            "concept, or all do."
        )
    for name in erased:
        better = gaps["surgery"] < gaps[name] and points["surgery"] >= points[name] - 0.5
        verdict = "surgery is ahead" if better else "surgery is not ahead of it"
        lines.append(f"{name}: gap {gaps[name]:.2f}, accuracy {points[name]:.2f} %; {verdict}.")
    controls = [gaps[name] for name in gaps if name.startswith("random")]
    if controls:
        shown = ", ".join(f"{gap:.2f}" for gap in controls)
        lines.append(f"Random words that are open as often leave a gap of {shown}.")
    leaks = [
        f"{old.probe} {old.auc.value:.3f} before, {new.auc.value:.3f} after"
        for old, new in zip(before.leaks, after.leaks, strict=True)
        if old.auc.value is not None and new.auc.value is not None
    ]
    if leaks:
        lines.append(f"Probes still tell the concept from the open words: {'; '.join(leaks)}.")
    return lines
