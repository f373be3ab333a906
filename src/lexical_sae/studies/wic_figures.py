"""The figure of the pairs in a word-in-context study."""

from __future__ import annotations

from collections.abc import Mapping

from lexical_sae.evaluation.word_in_context import WordInContext
from lexical_sae.report.finding import Dot, DotPlot
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
