"""A study run once for each of several seeds: what each found, and the numbers over all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from lexical_sae.report.finding import Cell, Dot, DotPlot, Estimate, Finding, FindingTable
from lexical_sae.studies.seeded import Own
from lexical_sae.studies.study_results import write_results

BARS = "Bars go from the least to the most of single seeds."
Label = tuple[str | int, ...]
Numbers = Mapping[Label, Mapping[str, float | None]]  # row → measure → value


@dataclass(frozen=True)
class Summed:
    """How a study's results become numbers that can stand over seeds."""

    title: str
    labels: tuple[str, ...]  # what the parts of a row's label are called
    numbers: Callable[[Mapping[str, Any]], Numbers]  # of results.json
    told: Callable[[Label], bool]  # rows that get a sentence


def run_by_seed(
    config: Own,
    folder: Path,
    console: Console,
    run: Callable[[Own, Path, Console], dict[str, Any]],
    summed: Summed,
) -> dict[str, Any]:
    """With one seed the study itself; with several each in a folder of its own, and one report."""
    if config.seeds == 1:
        return run(config, folder, console)
    found = {}
    for place, (name, one) in enumerate(config.by_seed().items(), 1):
        console.print(f"[{place}/{config.seeds}] seed {one.seed}", style="bold")
        found[str(name)] = run(one, folder / name, console)
    return _written(config, folder, console, found, summed)


def _written(
    config: Own,
    folder: Path,
    console: Console,
    found: Mapping[str, dict[str, Any]],
    summed: Summed,
) -> dict[str, Any]:
    """`found` is what each results.json holds, by its folder."""
    over = over_seeds([summed.numbers(one) for one in found.values()])
    lines = [
        f"{', '.join(map(str, label))}: {', '.join(said)}; mean (least to most) of "
        f"{config.seeds} seeds."
        for label, row in over.items()
        if summed.told(label) and (said := _said(row))
    ]
    measures = list(next(iter(over.values())))
    columns = (*summed.labels, *(part for name in measures for part in (name, "least", "most")))
    rows = tuple((*label, *_cells(row)) for label, row in over.items())
    part = Finding(
        tables=(FindingTable(f"Means over {config.seeds} seeds", columns, rows),),
        dots=tuple(_figure(name, over, summed) for name in measures),
        notes=("Least and most are those of single seeds; what each found has its own intervals.",),
    )
    runs = [
        {"folder": name, "summary": one["summary"], "failed": one.get("failed", [])}
        for name, one in found.items()
    ]
    return write_results(
        config,
        folder,
        console,
        summed.title,
        f"{config.seeds} seeds, each with a report of its own in {', '.join(found)}",
        lines,
        {("Seeds", "Does it hold with other seeds?"): (part, 0.0)},
        seeds=range(config.seeds),
        record={"study": config.study, "seeds": ", ".join(map(str, range(config.seeds)))},
        runs=runs,
        failed=[f"{one['folder']}: {told}" for one in runs for told in one["failed"]],
    )


def over_seeds(every: Sequence[Numbers]) -> dict[Label, dict[str, Estimate]]:
    """Every row and measure that some seed has, in the order in which they come up."""
    labels = dict.fromkeys(label for one in every for label in one)
    names = dict.fromkeys(name for one in every for row in one.values() for name in row)
    return {label: {name: _over(every, label, name) for name in names} for label in labels}


def _over(every: Sequence[Numbers], label: Label, name: str) -> Estimate:
    """The mean over the seeds that have it, between the least and the most."""
    known = [value for one in every if (value := one.get(label, {}).get(name)) is not None]
    if not known:
        return Estimate(None, why="undefined with every seed")
    return Estimate(sum(known) / len(known), min(known), max(known))


def _said(row: Mapping[str, Estimate]) -> list[str]:
    return [
        f"{name} {one.value:.2f} ({one.low:.2f} to {one.high:.2f})"
        for name, one in row.items()
        if one.value is not None
    ]


def _cells(row: Mapping[str, Estimate]) -> tuple[Cell, ...]:
    return tuple(part for one in row.values() for part in (one.value, one.low, one.high))


def _figure(name: str, over: Mapping[Label, Mapping[str, Estimate]], summed: Summed) -> DotPlot:
    dots = (
        Dot(", ".join(map(str, label)), row[name], "")
        for label, row in over.items()
        if summed.told(label)
    )
    return DotPlot(f"{summed.title}: {name}", name, tuple(dots), BARS)
