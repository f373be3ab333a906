"""Bars of a table's column: true to the numbers, inside of their box, and readable without it."""

from __future__ import annotations

import re

from lexical_sae.report.bar_chart import MOST_BARS, WIDTH, Bar, bar_chart, bars_of
from lexical_sae.report.finding import FindingTable

TABLE = FindingTable(
    "Explainers",
    ("explainer", "of", "texts", "NAOPC", "from", "to", "note"),
    (
        ("LIME", "<twin>", 20, 0.5, 0.25, 0.75, "x"),
        ("SHAP", "", 20, None, None, None, "x"),
        ("a name that is far longer than what fits above one bar of a chart", "", 3, 1, 1, 1, ""),
    ),
)


def rects(drawn: str, kind: str) -> list[tuple[float, float]]:
    found = re.findall(rf'<rect class="{kind}" x="([\d.]+)" y="[\d.]+" width="([\d.]+)"', drawn)
    return [(float(x), float(width)) for x, width in found]


def test_bars_are_those_of_the_column_with_its_interval() -> None:
    bars = bars_of(TABLE, {"elsewhere": 1, "NAOPC": 1})
    assert bars is not None
    assert bars.bars[0] == Bar("LIME, <twin>", 0.5, 0.25, 0.75)
    assert len(bars.bars) == 2  # what is undefined has no bar
    drawn = bar_chart(bars)
    assert [width for _, width in rects(drawn, "more")] == [(WIDTH - 2) / 2, WIDTH - 2]
    assert "<title>Explainers: NAOPC</title>" in drawn
    assert "LIME, &lt;twin&gt;: 0.5 (0.25 to 0.75)" in drawn  # the description
    assert drawn.count(">0.5 (0.25 to 0.75)</text>") == 1  # beside the bar
    assert "of a chart: 1" in drawn  # the whole name, for those who hear it
    assert "…</text>" in drawn
    assert 'style="' not in drawn


def test_what_is_below_zero_goes_to_the_left_of_it() -> None:
    table = FindingTable("Parts", ("part", "mean"), (("a", -1.0), ("b", 3.0)))
    bars = bars_of(table, {"mean": None})
    assert bars is not None
    drawn = bar_chart(bars)
    (left, width), (right, _) = rects(drawn, "less")[0], rects(drawn, "more")[0]
    assert left + width == right
    assert "\N{MINUS SIGN}1</text>" in drawn
    assert "interval" not in drawn.split("</svg>")[0]


def test_nothing_to_draw_is_no_figure() -> None:
    assert bars_of(TABLE, {"AUPRC": 1}) is None
    assert bars_of(FindingTable("t", ("a", "b"), (("x", None), ("y", "z"))), {"b": None}) is None
    zero = bars_of(FindingTable("t", ("a", "b"), (("x", 0.0),)), {"b": None})
    assert zero is not None
    assert rects(bar_chart(zero), "more") == [(1.0, 0.0)]


def test_many_rows_are_cut_and_said() -> None:
    rows = tuple((f"class {i}", float(i)) for i in range(MOST_BARS + 5))
    bars = bars_of(FindingTable("t", ("class", "n"), rows), {"n": None})
    assert bars is not None
    assert len(bars.bars) == MOST_BARS
    assert "the others (5) in the table" in bar_chart(bars)
