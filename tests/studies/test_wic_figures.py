"""The figures of the word-in-context study."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from lexical_sae.report.dot_chart import dot_chart
from lexical_sae.report.finding import Estimate
from lexical_sae.studies.wic_figures import pairs_figures, task_figure


def test_pairs_have_their_intervals_in_percent() -> None:
    found: Any = SimpleNamespace(covered_pairs={"routes": Estimate(0.6, 0.5, 0.7)})
    (figure,) = pairs_figures({"test": found})
    dot = figure.dots[0]
    assert (dot.name, dot.found) == ("routes", Estimate(60.0, 50.0, 70.0))
    assert "95 % intervals" in dot_chart(figure)


def test_runs_of_the_task_are_rows_without_an_interval() -> None:
    test = {"accuracy": 0.875, "open_words": 31.6}
    runs = [{"seed": 1, "senses": on, "test": test} for on in (False, True)]
    figure = task_figure(runs)
    assert [dot.name for dot in figure.dots] == ["without senses, seed 1", "with senses, seed 1"]
    assert figure.dots[0].found == Estimate(87.5)
    assert figure.dots[0].beside == "32 words"
    assert "95 %" not in dot_chart(figure)
