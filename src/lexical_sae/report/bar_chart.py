"""One column of a table as horizontal bars: inline SVG, no script, readable in light and dark.

Each bar has its name and its value written above it, so that neither colour nor the eye for
lengths is needed, and long names fit on a narrow screen.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lexical_sae.report.finding import Cell, FindingTable
from lexical_sae.report.page import render

WIDTH, ROW, BAR, TOP = 400, 34, 10, 4  # BAR and the text above it share a ROW
MOST_BARS = 20
LINE = 60  # letters of name and value that fit above a bar


@dataclass(frozen=True)
class Bar:
    name: str
    value: float
    low: float | None = None  # of its interval
    high: float | None = None


@dataclass(frozen=True)
class Bars:
    title: str
    unit: str  # the column that is drawn
    bars: tuple[Bar, ...]
    full: float | None = None  # the value that fills the width; None: the largest
    left_out: int = 0


def bars_of(table: FindingTable, columns: Mapping[str, float | None]) -> Bars | None:
    """The first of `columns` that the table has; an interval if "from" and "to" follow it. The
    text columns before the first number name the bars. `columns` say which value fills the width.
    None if there is nothing to draw."""
    column = next((name for name in columns if name in table.columns), None)
    if column is None:
        return None
    at = table.columns.index(column)
    has_interval = table.columns[at + 1 : at + 3] == ("from", "to")
    found = []
    for row in table.rows:
        value = _number(row[at])
        if value is None:
            continue
        ends = [_number(cell) for cell in row[at + 1 : at + 3]] if has_interval else [None, None]
        found.append(Bar(_name(row[:at]), value, ends[0], ends[1]))
    if not found:
        return None
    shown, full = tuple(found[:MOST_BARS]), columns[column]
    return Bars(table.title, column, shown, full, len(found) - len(shown))


def bar_chart(bars: Bars) -> str:
    """The figure, with its values for those who cannot see it."""
    ends = [end for bar in bars.bars for end in (bar.value, bar.low, bar.high) if end is not None]
    low, high = min(0.0, *ends), max(bars.full or 0.0, *ends)
    size = (high - low) or 1.0

    def across(value: float) -> float:
        return round(1 + (value - low) / size * (WIDTH - 2), 1)

    rows = []
    for place, bar in enumerate(bars.bars):
        written = _written(bar)
        start, end = sorted((across(0.0), across(bar.value)))
        top = TOP + place * ROW
        rows.append(
            {
                "name": _cut(bar.name, LINE - len(written)),
                "value": written,
                "text_y": top + 14,
                "y": top + 19,
                "middle": top + 19 + BAR / 2,
                "x": start,
                "width": round(end - start, 1),
                "kind": "less" if bar.value < 0 else "more",
                "ends": None
                if bar.low is None or bar.high is None
                else (across(bar.low), across(bar.high)),
                "said": f"{bar.name}: {written}",
            }
        )
    return render(
        "bar_chart.html",
        bars=bars,
        rows=rows,
        box={
            **{"width": WIDTH, "height": TOP + ROW * len(rows) + 2, "bar": BAR},
            **{"zero": across(0.0), "top": TOP, "bottom": TOP + ROW * len(rows)},
        },
    )


def _number(cell: Cell) -> float | None:
    if isinstance(cell, (int, float)) and not isinstance(cell, bool) and math.isfinite(cell):
        return float(cell)
    return None


def _name(cells: Sequence[Cell]) -> str:
    """Of the text columns before the first number."""
    texts: list[str] = []
    for cell in cells:
        if not isinstance(cell, str):
            break
        texts.append(cell)
    return ", ".join(text for text in texts if text)


def _written(bar: Bar) -> str:
    value = _short(bar.value)
    if bar.low is None or bar.high is None:
        return value
    return f"{value} ({_short(bar.low)} to {_short(bar.high)})"


def _short(value: float) -> str:
    """Three significant digits, whole numbers with thousands, a true minus sign."""
    if value.is_integer():
        text = f"{int(value):,}"
    else:
        text = f"{value:.1e}" if abs(value) < 1e-3 else f"{value:.3g}"
        if "e+" in text:
            text = f"{value:,.0f}"
    return text.replace("-", "\N{MINUS SIGN}", 1) if text.startswith("-") else text


def _cut(name: str, letters: int) -> str:
    """So much of a name as fits; letters of East Asian scripts are twice as wide."""
    used = 0
    for place, letter in enumerate(name):
        used += 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        if used > letters:
            return name[: max(1, place - 1)] + "…"
    return name
