"""What came out of a surgery study, in sentences; what did not hold is said as plainly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lexical_sae.report.finding import Estimate
from lexical_sae.report.shown import percent
from lexical_sae.studies.repeated import Numbers, Summed
from lexical_sae.studies.surgery_findings import Point
from lexical_sae.surgery.comparison import Compared, Duel
from lexical_sae.surgery.fairness import FEWEST_ROWS

HALF = 0.5


def summary(compared: Sequence[Compared], duels: Sequence[Duel], words: Sequence[str]) -> list[str]:
    by_name = {one.name: one for one in compared}
    before, after = by_name["baseline"], by_name["surgery"]
    accuracy = [100 * (one.accuracy.value or 0.0) for one in (before, after)]
    lines = [
        f"Cut out: {', '.join(words) if words else 'nothing; no word narrows the gap'}.",
        f"The mean FPR gap goes from {_gap(before)} to {_gap(after)}, the task's accuracy from "
        f"{accuracy[0]:.2f} to {accuracy[1]:.2f} % ({accuracy[1] - accuracy[0]:+.2f}).",
    ]
    if after.gap_fall.value is not None and words:
        lines.append(f"The cut takes away {_share(after.gap_fall)} of the gap: {_half(after)}.")
    lines.extend(map(_against, duels))
    if not duels:
        lines.append(
            f"LEACE is left out: fewer than {FEWEST_ROWS} training rows mention a group of the "
            "concept, or all do."
        )
    lines.extend(_unread(by_name))
    controls = [one for one in compared if one.name.startswith("random words, ")]
    if controls and all(one.gap_fall.value is not None for one in controls):
        falls = ", ".join(_share(one.gap_fall) for one in controls)
        halved = [one for one in controls if (one.gap_fall.value or 0.0) >= HALF]
        verdict = f"{len(halved)} of them halve it" if halved else "none halves it"
        lines.append(f"Random words that are open as often take away {falls}: {verdict}.")
    lines.extend(_leaks(before, after))
    return lines


def _unread(by_name: Mapping[str, Compared]) -> list[str]:
    before = by_name["baseline"]
    lines = []
    for one in (found for name, found in by_name.items() if name.endswith("left unread")):
        change = 100 * ((one.accuracy.value or 0.0) - (before.accuracy.value or 0.0))
        fall = "" if one.gap_fall.value is None else f", {_share(one.gap_fall)} of it gone"
        lines.append(
            f"{one.name[0].upper()}{one.name[1:]}: gap {_gap(one)}{fall}, accuracy "
            f"{change:+.2f} points."
        )
    return lines


def bounded(points: Sequence[Point], largest_loss: float) -> list[str]:
    """The best of the points that keep the accuracy on test rows as well: the words were chosen
    under a bound on validation rows, which other rows need not hold."""
    gaps = [point.gap.value for point in points]
    right = [point.accuracy.value for point in points]
    if len(points) < 2 or gaps[0] is None or right[0] is None or not gaps[0] > 0:
        return []
    lost = [right[0] - (one or 0.0) for one in right]
    kept = [k for k, loss in enumerate(lost) if loss <= largest_loss + 1e-12]
    best = min(kept, key=lambda k: (gaps[k] or 0.0, k))
    fall = 1 - (gaps[best] or 0.0) / gaps[0]
    half = "at least half" if fall >= HALF else "less than half"
    words = "1 word" if best == 1 else f"{best} words"
    return [
        f"With at most {100 * largest_loss:g} points of accuracy lost on test rows too: the first "
        f"{words}, gap {100 * (gaps[best] or 0.0):.2f} points, {100 * fall:.1f} % of it gone "
        f"({half}), accuracy {round(-100 * lost[best], 2) + 0.0:+.2f} points."
    ]


def _against(duel: Duel) -> str:
    ours, theirs = (100 * gap for gap in duel.gap)
    words = "1 word" if duel.words == 1 else f"{duel.words} words"
    line = (
        f"Against {duel.other}, at its accuracy on validation rows "
        f"({100 * duel.accuracy[1]:.2f} %; surgery with {words}: "
        f"{100 * duel.accuracy[0]:.2f} %): gap {ours:.2f} against {theirs:.2f} points"
    )
    if duel.difference.value is None:
        return f"{line}."
    return f"{line}, {_interval(duel.difference, 'points')} apart: {duel.verdict}."


def _leaks(before: Compared, after: Compared) -> list[str]:
    lines = []
    for source in dict.fromkeys(leak.source for leak in before.leaks):
        told = [
            f"{old.probe} {old.auc.value:.3f} before, {new.auc.value:.3f} after"
            for old, new in zip(before.leaks, after.leaks, strict=True)
            if old.source == source and old.auc.value is not None and new.auc.value is not None
        ]
        if told:
            lines.append(
                f"How well probes tell the concept from the {source} (AUC; 0.5 is chance): "
                f"{'; '.join(told)}."
            )
    return lines


def _half(one: Compared) -> str:
    fall = one.gap_fall
    if fall.low is not None and fall.low >= HALF:
        return "at least half, and the whole interval says so"
    return "at least half" if (fall.value or 0.0) >= HALF else "less than half"


def _gap(one: Compared) -> str:
    value = one.bias.mean_fpr_gap.value
    return "undefined (no group is large enough)" if value is None else f"{100 * value:.2f} points"


def _share(found: Estimate) -> str:
    return _interval(found, "%")


def _interval(found: Estimate, unit: str) -> str:
    value, low, high = (100 * (v or 0.0) for v in (found.value, found.low, found.high))
    return f"{value:.1f} {unit} ({low:.1f} to {high:.1f})"


def _over_seeds(found: Mapping[str, Any]) -> Numbers:
    """Of results.json: what each treatment costs and brings."""
    return {
        (one["name"],): {
            "accuracy, %": percent(one["accuracy"]["value"]),
            "mean FPR gap, points": percent(one["bias"]["mean_fpr_gap"]["value"]),
            "of the gap gone, %": percent(one["gap_fall"]["value"]),
        }
        for one in found["comparison"]
    }


OVER_SEEDS = Summed("Surgery", ("treatment",), _over_seeds, lambda label: True)
