"""Arms as figures: accuracy with its interval, and the open words beside it."""

from __future__ import annotations

from collections.abc import Sequence

from lexical_sae.report.finding import Dot, DotPlot, Estimate
from lexical_sae.studies.arms_table import Arm
from lexical_sae.studies.places import place_names, place_of


def arms_figures(title: str, arms: Sequence[Arm]) -> tuple[DotPlot, ...]:
    """One for each dataset and backbone, its arms in their order."""
    plots = []
    for place, where in place_names(arms).items():
        own = [arm for arm in arms if place_of(arm) == place]
        dots = tuple(Dot(arm.name, hundred(arm.accuracy()), _words(arm)) for arm in own)
        plots.append(DotPlot(f"{title} on {where}", "accuracy, %", dots))
    return tuple(plots)


def hundred(found: Estimate) -> Estimate:
    """Shares as percent."""
    value, low, high = (
        None if one is None else 100 * one for one in (found.value, found.low, found.high)
    )
    return Estimate(value, low, high, found.why)


def _words(arm: Arm) -> str:
    words = arm.mean("open_words")
    return "" if words is None else f"{words:.0f} words"
