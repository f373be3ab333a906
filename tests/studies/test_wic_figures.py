"""The figure of the pairs in the word-in-context study."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from lexical_sae.report.dot_chart import dot_chart
from lexical_sae.report.finding import Estimate
from lexical_sae.studies.wic_figures import pairs_figures


def test_pairs_have_their_intervals_in_percent() -> None:
    found: Any = SimpleNamespace(covered_pairs={"routes": Estimate(0.6, 0.5, 0.7)})
    (figure,) = pairs_figures({"test": found})
    dot = figure.dots[0]
    assert (dot.name, dot.found) == ("routes", Estimate(60.0, 50.0, 70.0))
    assert "95 % intervals" in dot_chart(figure)
