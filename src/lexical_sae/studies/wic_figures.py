"""The figures of a word-in-context study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lexical_sae.evaluation.word_in_context import WordInContext
from lexical_sae.report.finding import Dot, DotPlot, Estimate
from lexical_sae.studies.arms_figure import hundred


def pairs_figures(measured: Mapping[str, WordInContext]) -> tuple[DotPlot, ...]:
    """Of every split the pairs whose word has senses: on the others nothing can differ."""
    return tuple(
        DotPlot(
            f"Pairs of {split} whose word has senses",
            "accuracy, %",
            tuple(Dot(name, hundred(one)) for name, one in found.covered_pairs.items()),
        )
        for split, found in measured.items()
    )


def task_figure(runs: Sequence[Mapping[str, Any]]) -> DotPlot:
    """A row for each run: its metrics hold no rows, so there is no interval."""
    dots = tuple(
        Dot(
            f"{'with' if one['senses'] else 'without'} senses, seed {one['seed']}",
            Estimate(100 * one["test"]["accuracy"]),
            f"{one['test']['open_words']:.0f} words",
        )
        for one in runs
    )
    return DotPlot("The task with senses and without", "accuracy, %", dots)
