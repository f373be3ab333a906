"""Systems side by side: ours, the dense twin with its explainers, autoencoders, linear, SetFit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lexical_sae.evaluation.bootstrap import Floats, mean_estimate, paired_p_value
from lexical_sae.report.finding import Cell, Dot, DotPlot, Estimate, FindingTable
from lexical_sae.studies.arms_figure import hundred
from lexical_sae.studies.systems import NUMBERS, System

COLUMNS = ("system", "accuracy, %", "from", "to", "p against ours", *NUMBERS)
Runs = Sequence[Sequence[System]]  # of every seed, ours first


def systems_table(title: str, systems: Sequence[System]) -> FindingTable:
    """Of one seed."""
    rows = tuple((one.name, *_accuracy([systems], one.name), *one.numbers) for one in systems)
    return FindingTable(title, COLUMNS, rows)


def means_table(title: str, runs: Runs) -> FindingTable:
    """The mean over seeds of every system; accuracy with its interval over rows, and the most by
    which two seeds differ in it."""
    rows: list[tuple[Cell, ...]] = []
    for name in _names(runs):
        found = _of(runs, name)
        shares = [_rights([one]).mean() for one in found]
        between = 100 * float(max(shares) - min(shares)) if len(found) > 1 else None
        numbers = (_mean([one.numbers[i] for one in found]) for i in range(len(NUMBERS)))
        rows.append((name, len(found), between, *_accuracy(runs, name), *numbers))
    columns = (COLUMNS[0], "seeds", "between seeds", *COLUMNS[1:])
    return FindingTable(title, columns, tuple(rows))


def systems_figure(title: str, runs: Runs) -> DotPlot:
    """Accuracy over seeds; the twin once, whatever explains it."""
    dots: dict[str, Dot] = {}
    for name in _names(runs):
        found = _of(runs, name)
        features = _mean([one.numbers[0] for one in found])
        beside = "" if features is None else f"{features:.0f} features"
        shown = name.split(",")[0]
        dots.setdefault(shown, Dot(shown, hundred(_estimate(found)), beside))
    return DotPlot(title, "accuracy, %", tuple(dots.values()))


def _names(runs: Runs) -> list[str]:
    return list(dict.fromkeys(one.name for systems in runs for one in systems))


def _of(runs: Runs, name: str) -> list[System]:
    return [one for systems in runs for one in systems if one.name == name]


def _rights(systems: Sequence[System]) -> Floats:
    """[rows]: how often each row is right, over some seeds."""
    marks = [[mark == "1" for mark in one.right] for one in systems]
    found: Floats = np.mean(np.array(marks, dtype=np.float64), axis=0)
    return found


def _estimate(systems: Sequence[System]) -> Estimate:
    return mean_estimate(_rights(systems))


def _accuracy(runs: Runs, name: str) -> tuple[Cell, ...]:
    """With its interval, and p against ours on the seeds that both have."""
    found = hundred(_estimate(_of(runs, name)))
    both = [systems for systems in runs if name in [one.name for one in systems]]
    own, other = _rights(_of(both, name)), _rights([systems[0] for systems in both])
    same = name == runs[0][0].name
    return (found.value, found.low, found.high, None if same else paired_p_value(own, other))


def _mean(values: Sequence[Cell]) -> float | None:
    known = [float(value) for value in values if isinstance(value, (int, float))]
    return sum(known) / len(known) if known else None


def system_lines(table: FindingTable) -> list[str]:
    """Ours first, then each of the others in one sentence."""
    ours = table.rows[0]
    lines = [f"{table.title}: ours is right on {ours[1]:.1f} % with {ours[5]:.0f} words."]
    for row in table.rows[1:]:
        if isinstance(row[1], float) and isinstance(ours[1], float):
            p = "" if row[4] is None else f" (p {row[4]:.2g})"
            said = f"{row[0]}: {row[1] - ours[1]:+.1f} points{p}"
            if isinstance(row[6], float) and isinstance(ours[6], float):
                said += f", NAOPC {row[6]:.2f} against {ours[6]:.2f}"
            if isinstance(row[12], (int, float)) and isinstance(ours[12], (int, float)):
                said += f", {row[12]:.3g} ms to explain against {ours[12]:.3g}"
            lines.append(f"{said}.")
    return lines
