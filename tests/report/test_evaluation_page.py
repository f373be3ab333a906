"""The page of an evaluation: whole, safe, and true to the numbers."""

from __future__ import annotations

import re
from typing import Any

import pytest

from lexical_sae.report.evaluation_page import evaluation_page, summary
from lexical_sae.report.finding import Curve, Estimate, Finding, FindingTable, Metric
from lexical_sae.report.line_chart import line_chart, nice_ticks
from lexical_sae.report.shown import shown


def evaluation(**changes: Any) -> dict[str, Any]:
    finding = Finding(
        metrics={"accuracy": Estimate(0.875, 0.85, 0.9), "open_words": Estimate(31.4, 31, 32)},
        tables=(FindingTable("A <table>", ("word", "n"), (("<b>bold</b>", 1234), ("x", None))),),
        curves=(Curve("Kept", "words, %", "agreement, %", {"a": ((1.0, 50.0), (50.0, 99.0))}),),
        worst=({"text": "<script>alert(1)</script>", "error": 0.5},),
        notes=("a note",),
        **changes,
    )
    step = {"title": "Task", "question": "Right?", "seconds": 1.25, **finding.to_dict()}
    metric = {"low": 0, "high": 1, "better": "higher", "best": 1}
    return {
        "schema": 1,
        "identity": {
            "dataset": "tiny",
            "split": "test",
            "rows": 1200,
            "unit": "texts",
            "model": "ab" * 32,
        },
        "failed": [],
        "steps": {"task": step},
        "metrics": {
            "accuracy": {"meaning": "share right", **metric},
            "open_words": {"meaning": "open words", **metric, "better": "lower"},
        },
        "environment": {"versions": {"torch": "2.13.0", "schedulefree": None}},
    }


def test_the_page_is_whole_and_what_comes_from_texts_is_escaped() -> None:
    found = evaluation_page(evaluation())
    assert found.startswith("<!doctype html>")
    assert "<script" not in found
    assert "&lt;script&gt;" in found
    assert "&lt;b&gt;bold" in found
    assert not re.search(r'(src|href)="', found)
    assert 'style="' not in found
    assert "1,234" in found
    assert "tiny, test split, 1,200 texts" in found


def test_the_summary_says_what_there_is_and_nothing_else() -> None:
    lines = summary(evaluation())
    assert lines == [
        "It is right on 87.5 % of the texts (85.0 to 90.0), and decides by 31 words each."
    ]


def test_a_step_without_a_curve_has_bars_of_its_table() -> None:
    found = evaluation()
    table = FindingTable("Texts of each class", ("class", "right, %"), (("spam", 87.5),))
    found["steps"]["task"] |= Finding(tables=(table,)).to_dict()
    assert "<title>Texts of each class: right, %</title>" in evaluation_page(found)
    assert "spam: 87.5" in evaluation_page(found)
    assert 'class="chart bars"' not in evaluation_page(evaluation())  # it has a curve


def test_the_record_holds_the_config_of_the_run() -> None:
    config = {"dataset": "<tiny>", "train_rows": None, "settings": {"epochs": 2, "gate": {"a": 1}}}
    page = evaluation_page({**evaluation(), "config": config})
    for name, value in (
        ("dataset", "&lt;tiny&gt;"),
        ("settings.epochs", 2),
        ("settings.gate.a", 1),
    ):
        assert f'{name}</th><td class="value"><code>{value}</code>' in page
    assert "Config of the run" not in evaluation_page(evaluation())


def test_a_failed_check_is_shown() -> None:
    assert "Failed: a sum is off." in evaluation_page(evaluation(failed="a sum is off"))


def test_undefined_is_said_and_not_shown_as_a_number() -> None:
    found = evaluation()
    found["steps"]["task"]["metrics"]["accuracy"] = {
        "value": None,
        "low": None,
        "high": None,
        "why": "no text",
    }
    assert "undefined: no text" in evaluation_page(found)


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, ""), ("word", "word"), (1234567, "1,234,567"), (0.5, "0.5"), (1e-7, "1.0e-07")],
)
def test_cells_for_people(value: Any, text: str) -> None:
    assert shown(value) == text


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-3, 7), (0.2, 0.21), (5, 5), (0, 0), (97, 100)])
def test_ticks_cover_the_range_with_few_round_numbers(low: float, high: float) -> None:
    ticks = nice_ticks(low, high)
    assert ticks[0] <= low + 1e-9
    assert ticks[-1] >= high - 1e-9
    assert 2 <= len(ticks) <= 8


def test_a_chart_has_every_point_inside_of_it() -> None:
    curve = Curve("t", "x", "y", {"a": ((0.0, -1.0), (5.0, 2.0)), "b": ((1.0, 1.0),)})
    drawn = line_chart(curve)
    circles = re.findall(r'cx="([\d.]+)" cy="([\d.]+)"', drawn)
    assert len(circles) == 3
    assert all(0 < float(x) < 560 and 0 < float(y) < 300 for x, y in circles)
    assert line_chart(Curve("t", "x", "y", {})) == ""


def test_a_metric_knows_its_range_and_its_best() -> None:
    metric = Metric("m", "meaning", 0, 1, "lower")
    assert metric.best == 0
    metric.check(0.5)
    with pytest.raises(ValueError, match="expected a number from 0 to 1"):
        metric.check(1.5)
    assert Metric("m", "meaning", better="neither").best is None
