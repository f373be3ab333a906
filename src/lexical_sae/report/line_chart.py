"""Curves as inline SVG: no script, no style attribute, readable in light and dark."""

from __future__ import annotations

import math
from typing import Any

from lexical_sae.report.finding import Curve
from lexical_sae.report.page import render

WIDTH, HEIGHT = 560, 300
LEFT, RIGHT, TOP, BOTTOM = 58, 14, 12, 44
MOST_LINES = 6  # as many as there are classes for lines in the style sheet


def nice_ticks(low: float, high: float, wanted: int = 5) -> list[float]:
    """Round numbers that cover low to high."""
    if high <= low:
        high = low + (abs(low) or 1.0)
    raw = (high - low) / wanted
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= raw * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [step * i for i in range(first, last + 1)]


# of the lines in a file of its own, which has no style sheet: colour and dashes
COLOURS = (
    *(("#0b6b3a", ""), ("#9c1c28", "6 3"), ("#5b6068", "2 3")),
    *(("#1a1c1f", "9 4"), ("#86d0a3", ""), ("#ee9ba4", "")),
)


def line_chart(curve: Curve) -> str:
    """The SVG of a curve for a page, with its points for those who cannot see it."""
    return _rendered(curve, "chart.html")


def chart_file(curve: Curve) -> str:
    """The SVG of a curve as a file that stands alone."""
    return _rendered(curve, "chart_file.svg", colours=COLOURS)


def _rendered(curve: Curve, template: str, **values: Any) -> str:
    points = [point for line in curve.lines.values() for point in line]
    if not points:
        return ""
    x_ticks = nice_ticks(min(x for x, _ in points), max(x for x, _ in points))
    y_ticks = nice_ticks(min(y for _, y in points), max(y for _, y in points))

    def across(x: float) -> float:
        share = (x - x_ticks[0]) / (x_ticks[-1] - x_ticks[0])
        return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)

    def down(y: float) -> float:
        share = (y - y_ticks[0]) / (y_ticks[-1] - y_ticks[0])
        return round(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM), 1)

    lines: list[dict[str, Any]] = [
        {
            "name": name,
            "kind": f"l{i % MOST_LINES}",
            "path": " ".join(f"{across(x)},{down(y)}" for x, y in line),
            "points": [(across(x), down(y)) for x, y in line],
            "values": ", ".join(f"{x:g}: {y:.4g}" for x, y in line),
        }
        for i, (name, line) in enumerate(curve.lines.items())
    ]
    return render(
        template,
        curve=curve,
        lines=lines,
        x_ticks=[(across(x), f"{x:g}") for x in x_ticks],
        y_ticks=[(down(y), f"{y:g}") for y in y_ticks],
        box={
            **{"width": WIDTH, "height": HEIGHT, "left": LEFT, "right": WIDTH - RIGHT},
            **{"top": TOP, "bottom": HEIGHT - BOTTOM, "middle": (LEFT + WIDTH - RIGHT) / 2},
        },
        **values,
    )
