"""Estimates with their intervals as inline SVG: a row each, its name above it."""

from __future__ import annotations

import hashlib
from typing import Any

from lexical_sae.report.finding import Dot, DotPlot
from lexical_sae.report.line_chart import nice_ticks
from lexical_sae.report.page import render
from lexical_sae.report.shown import shown

# Narrow, and names above their rows instead of beside them: so a telephone shows it nearly in full
# size, and a long name takes nothing from the scale.
WIDTH, LEFT, RIGHT, TOP, ROW, BOTTOM = 420, 10, 10, 2, 36, 42
LETTERS = 58  # of a name and what is beside it; more would run out of the picture


def dot_chart(plot: DotPlot) -> str:
    """The SVG of a plot for a page; empty if no row has a value."""
    return _rendered(plot, "dots.html")


def dot_chart_file(plot: DotPlot) -> str:
    """The SVG of a plot as a file that stands alone."""
    return _rendered(plot, "dots_file.svg")


def _rendered(plot: DotPlot, template: str) -> str:
    ends = [
        value
        for dot in plot.dots
        for value in (dot.found.value, dot.found.low, dot.found.high)
        if value is not None
    ]
    if not ends:
        return ""
    ticks = nice_ticks(min(ends), max(ends))

    def across(x: float) -> float:
        share = (x - ticks[0]) / (ticks[-1] - ticks[0])
        return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)

    rows: list[dict[str, Any]] = []
    for place, dot in enumerate(plot.dots):
        found = dot.found
        whole = found.low is not None and found.high is not None and found.value is not None
        rows.append(
            {
                "name": _short(dot.name, LETTERS - len(dot.beside)),
                "beside": dot.beside,
                "y": TOP + ROW * place + 26,
                "dot": None if found.value is None else across(found.value),
                "ends": (across(found.low or 0.0), across(found.high or 0.0)) if whole else None,
                "why": found.why or "not measured",
            }
        )
    height = TOP + ROW * len(rows) + BOTTOM
    return render(
        template,
        plot=plot,
        rows=rows,
        said="; ".join(map(_said, plot.dots)),
        ticks=[(across(x), f"{x:g}") for x in ticks],
        # a page holds several, and what names a picture is found by its id
        key=hashlib.sha256(repr(plot).encode()).hexdigest()[:8],
        box={
            **{"width": WIDTH, "height": height, "left": LEFT, "right": WIDTH - RIGHT},
            **{"top": TOP, "bottom": height - BOTTOM, "middle": WIDTH / 2},
        },
    )


def _said(dot: Dot) -> str:
    """A row in words, for those who cannot see it."""
    found = dot.found
    if found.value is None:
        return f"{dot.name}: {found.why or 'not measured'}"
    between = ""
    if found.low is not None and found.high is not None:
        between = f" ({shown(found.low)} to {shown(found.high)})"
    beside = f", {dot.beside}" if dot.beside else ""
    return f"{dot.name}: {shown(found.value)}{between}{beside}"


def _short(name: str, letters: int) -> str:
    return name if len(name) <= letters else name[: letters - 1] + "…"
