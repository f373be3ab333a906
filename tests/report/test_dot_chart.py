"""Plots of estimates: every row is there, named, described and inside of the picture."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

from lexical_sae.report.dot_chart import WIDTH, dot_chart
from lexical_sae.report.finding import Dot, DotPlot, Estimate, Finding
from lexical_sae.report.study_page import write_study

SVG = "{http://www.w3.org/2000/svg}"
PLOT = DotPlot(
    "Arms on <d>",
    "accuracy, %",
    (
        Dot("full & whole", Estimate(84.0, 81.5, 86.5), "32 words"),
        Dot("no interval", Estimate(80.0)),
        Dot("failed", Estimate(None, why="no run finished")),
        Dot("x" * 90, Estimate(60.0, 50.0, 70.0)),
    ),
)


def test_every_row_is_drawn_and_said(tmp_path: Path) -> None:
    finding = Finding(dots=(PLOT, DotPlot("empty", "x", (Dot("a", Estimate(None)),))))
    part = {("Part", "Why?"): (finding, 1.0)}
    write_study(tmp_path, "S", "lead", ["It works."], part, {}, {"versions": {}})
    assert [file.name for file in (tmp_path / "figures").iterdir()] == ["arms-on-d.svg"]
    root = ElementTree.fromstring((tmp_path / "figures" / "arms-on-d.svg").read_text())
    names = [one.text or "" for one in root.iter(f"{SVG}text") if one.get("class") == "name"]
    assert names[:3] == ["full & whole", "no interval", "failed"]
    assert names[3].endswith("…")
    circles = list(root.iter(f"{SVG}circle"))
    assert len(circles) == 3
    bars = [one for one in root.iter(f"{SVG}line") if one.get("class") == "between"]
    assert len(bars) == 2 * 3
    places = [float(one.get("cx", "0")) for one in circles]
    places += [float(one.get(end, "0")) for one in bars for end in ("x1", "x2")]
    assert all(0 <= x <= WIDTH for x in places)
    assert places[2] < places[1] < places[0]
    said = root.findtext(f"{SVG}desc") or ""
    assert "full & whole: 84 (81.5 to 86.5), 32 words; no interval: 80; failed: no run" in said
    title = root.find(f"{SVG}title")
    assert title is not None
    assert str(title.get("id")) in str(root.get("aria-labelledby"))
    page = (tmp_path / "report.html").read_text()
    assert page.count("<figure") == 1
    assert "full &amp; whole" in page
    assert "Arms on &lt;d&gt;" in page


def test_a_plot_without_a_value_is_not_drawn() -> None:
    assert dot_chart(DotPlot("t", "x", ())) == ""


def test_one_value_alone_has_a_scale() -> None:
    assert "<circle" in dot_chart(DotPlot("t", "x", (Dot("a", Estimate(0.0, 0.0, 0.0)),)))


def test_it_is_kept_and_files_of_earlier_versions_are_read() -> None:
    finding = Finding(dots=(PLOT,))
    kept = json.loads(json.dumps(finding.to_dict()))
    assert Finding.from_dict(kept) == finding
    del kept["dots"]
    assert Finding.from_dict(kept) == Finding()
