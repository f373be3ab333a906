"""The files of a study: figures that stand alone, names that do not collide."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from lexical_sae.report.finding import Curve, Dot, DotPlot, Estimate, Finding, FindingTable
from lexical_sae.report.line_chart import COLOURS, MOST_LINES
from lexical_sae.report.study_page import figures_of, write_study

CURVE = Curve("A & B: <i>", "x", "y", {"one <b>": ((0.0, 1.0), (2.0, 3.0)), "two": ((1.0, 1.0),)})
SVG = "{http://www.w3.org/2000/svg}"


def test_a_figure_is_a_whole_file_with_its_lines_named(tmp_path: Path) -> None:
    found = figures_of([CURVE, CURVE, Curve("empty", "x", "y", {})], tmp_path)
    assert [file.name for file in found] == ["a-b-i.svg", "a-b-i-2.svg"]
    root = ElementTree.fromstring(found[tmp_path / "a-b-i.svg"])
    assert root.tag == f"{SVG}svg"
    texts = [element.text for element in root.iter(f"{SVG}text")]
    assert "A & B: <i>: y" in texts
    assert {"one <b>", "two"} <= set(texts)
    assert len(root.findall(f"{SVG}polyline")) == 2
    assert len(COLOURS) == MOST_LINES


def test_a_study_leaves_page_tables_and_figures(tmp_path: Path) -> None:
    finding = Finding(
        metrics={"accuracy": Estimate(0.5)},
        tables=(FindingTable("T", ("a",), ((1,),)),),
        curves=(CURVE,),
    )
    meanings = {"accuracy": {"meaning": "share that is right", "better": "higher"}}
    written = write_study(
        tmp_path,
        "Study",
        "lead",
        ["It works."],
        {("Part", "Why?"): (finding, 1.0)},
        {"study": "s"},
        {"versions": {"torch": "2"}},
        meanings,
    )
    assert all(file.is_file() for file in written)
    names = {str(file.relative_to(tmp_path)) for file in written}
    assert names == {"report.html", "tables.md", "tables.tex", "figures/a-b-i.svg"}
    assert "share that is right" in (tmp_path / "report.html").read_text()


def test_figures_of_an_earlier_report_do_not_stay(tmp_path: Path) -> None:
    dots = DotPlot("Dots", "x", (Dot("one", Estimate(0.5, 0.4, 0.6), ""),))
    earlier = Finding(dots=(dots,), curves=(CURVE,))
    now = Finding(curves=(CURVE,))

    def names(finding: Finding) -> set[str]:
        write_study(tmp_path, "S", "", [], {("P", "?"): (finding, 1.0)}, {}, {"versions": {}})
        return {file.name for file in (tmp_path / "figures").iterdir()}

    assert names(earlier) == {"a-b-i.svg", "dots.svg"}
    (tmp_path / "figures" / "mine.svg").write_text("<svg><!-- drawn by hand --></svg>")
    assert names(now) == {"a-b-i.svg", "mine.svg"}
    assert names(Finding()) == {"mine.svg"}
