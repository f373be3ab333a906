"""Both ways to fewer words in one figure: models trained for each number, and a model turned."""

from __future__ import annotations

from collections.abc import Sequence

from lexical_sae.report.finding import Cell as Shown
from lexical_sae.report.finding import Curve, Finding, FindingTable
from lexical_sae.studies.arms_table import NOTE, Arm
from lexical_sae.studies.grid import Outcome
from lexical_sae.studies.places import place_names, place_of

Points = tuple[tuple[float, float], ...]
TRAINED = "trained for each number"


def frontier_finding(
    arms: Sequence[Arm], outcomes: Sequence[Outcome], table: FindingTable, turned: int
) -> Finding:
    """The table of arms, and for each dataset and backbone a figure, the dial's table beside it.
    Both curves are means over seeds; on how many rows is said, since it is not the same."""
    curves: list[Curve] = []
    tables, notes = [table], [NOTE]
    name = f"thresholds of the model for {turned} turned"
    for place, where in place_names(arms).items():
        own = [arm for arm in arms if place_of(arm) == place]
        lines = {TRAINED: trained_points(own)}
        dials = [
            Finding.from_dict(one.found["dial"])
            for one in outcomes
            if place_of(one.cell) == place and "dial" in one.found
        ]
        if dials:
            mean = mean_dial(f"{where}: {name}", [dial.tables[0] for dial in dials])
            tables.append(mean)
            lines[name] = dial_points(mean)
            notes.append(
                f"{where}, {name}: mean of {len(dials)} seed{'s' * (len(dials) > 1)}, each on "
                f"{dials[0].notes[0]}. {TRAINED.capitalize()}: mean of the seeds that the table "
                f"tells, on all {rows_of(own):,} rows."
            )
        curves.append(Curve(f"Frontier on {where}", "open words", "accuracy, %", lines))
    return Finding(tables=tuple(tables), curves=tuple(curves), notes=tuple(notes))


def mean_dial(title: str, seeds: Sequence[FindingTable]) -> FindingTable:
    """Row by row, so that the same factor of the thresholds is averaged; what not every seed was
    turned to is left out."""
    by_factor = [{row[0]: row for row in table.rows} for table in seeds]
    shared = [factor for factor in by_factor[0] if all(factor in rows for rows in by_factor)]
    rows: list[tuple[Shown, ...]] = []
    for factor in shared:
        columns = zip(*(found[factor][1:] for found in by_factor), strict=True)
        rows.append((factor, *map(_mean, columns)))
    return FindingTable(title, seeds[0].columns, tuple(rows))


def dial_points(table: FindingTable) -> Points:
    """Open words and accuracy, from fewer words to more."""
    return tuple(sorted((float(row[1] or 0), float(row[2] or 0)) for row in table.rows))


def trained_points(arms: Sequence[Arm]) -> Points:
    points = [(arm.mean("open_words"), arm.accuracy().value) for arm in arms]
    return tuple(sorted((words, 100 * right) for words, right in points if words and right))


def rows_of(arms: Sequence[Arm]) -> int:
    """That accuracy is taken on."""
    return max(len(one.found["right"]) for arm in arms for one in arm.finished.values())


def _mean(values: Sequence[Shown]) -> Shown:
    """None where one of the seeds has no number."""
    known = [float(value) for value in values if isinstance(value, (int, float))]
    return sum(known) / len(known) if len(known) == len(values) else None
