"""Systems side by side: ours, the dense twin with its explainers, autoencoders, linear, SetFit."""

from __future__ import annotations

from collections.abc import Sequence

from lexical_sae.evaluation.bootstrap import (
    Floats,
    may_be_chance,
    runs_difference,
    runs_estimate,
)
from lexical_sae.report.finding import Cell, Dot, DotPlot, Estimate, FindingTable
from lexical_sae.studies.arms_figure import hundred
from lexical_sae.studies.arms_table import right_rows
from lexical_sae.studies.experiment import TWIN
from lexical_sae.studies.systems import NUMBERS, System

ACCURACY = ("accuracy, %", "from", "to")
AGAINST = ("minus ours", "from ", "to ", "p against ours")
COLUMNS = ("system", *ACCURACY, *AGAINST, *NUMBERS)
Runs = Sequence[Sequence[System]]  # of every seed, ours first


def systems_table(title: str, systems: Sequence[System]) -> FindingTable:
    """Of one seed."""
    rows = tuple((one.name, *_accuracy([systems], one.name), *one.numbers) for one in systems)
    return FindingTable(title, COLUMNS, rows)


def means_table(title: str, runs: Runs) -> FindingTable:
    """The mean over seeds of every system; accuracy and its difference from ours with intervals
    over seeds and rows, and the most by which two seeds differ in it."""
    rows: list[tuple[Cell, ...]] = []
    for name in _names(runs):
        found = _of(runs, name)
        shares = _rights(found).mean(1)
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
    """[seeds, rows]: 1 where a row is right, else 0."""
    return right_rows(one.right for one in systems)


def _estimate(systems: Sequence[System]) -> Estimate:
    return runs_estimate(_rights(systems))


def _accuracy(runs: Runs, name: str) -> tuple[Cell, ...]:
    """With its interval, then how far it is from ours on the seeds that both have."""
    found = hundred(_estimate(_of(runs, name)))
    both = [systems for systems in runs if name in [one.name for one in systems]]
    own, ours = _rights(_of(both, name)), _rights([systems[0] for systems in both])
    apart = None if name == runs[0][0].name else runs_difference(own, ours)
    told: tuple[Cell, ...] = (None,) * len(AGAINST)
    if apart is not None:
        told = (100 * apart.value, 100 * apart.low, 100 * apart.high, apart.p)
    return (found.value, found.low, found.high, *told)


def _mean(values: Sequence[Cell]) -> float | None:
    known = [float(value) for value in values if isinstance(value, (int, float))]
    return sum(known) / len(known) if known else None


def _number(value: Cell) -> float:
    assert isinstance(value, (int, float))
    return float(value)


def system_lines(table: FindingTable) -> list[str]:
    """Ours first, then each of the others in one sentence."""
    ours, *others = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    said = f"{_number(ours['accuracy, %']):.1f} % with {_number(ours['features per text']):.0f}"
    lines = [f"{table.title}: ours is right on {said} words."]
    for row in others:
        if row["minus ours"] is None:
            continue
        low, high, p = (_number(row[name]) for name in AGAINST[1:])
        chance = ", which may be chance" if may_be_chance(low, high, p) else ""
        said = (
            f"{row['system']}: {_number(row['minus ours']):+.1f} points ({low:+.1f} to "
            f"{high:+.1f}; p {p:.2g} over rows){chance}"
        )
        # a system that names features of its own orders other things than the words of a text
        of_words = str(row["system"]).startswith(TWIN)
        if of_words and None not in (row["NAOPC"], ours["NAOPC"]):
            said += f", NAOPC {_number(row['NAOPC']):.2f} against {_number(ours['NAOPC']):.2f}"
        if None not in (row["ms to explain"], ours["ms to explain"]):
            own, theirs = (_number(one["ms to explain"]) for one in (ours, row))
            said += f", {_rounded(theirs)} ms to explain against {_rounded(own)}"
        lines.append(f"{said}.")
    return lines


def _rounded(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
