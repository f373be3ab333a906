"""A study as one HTML file and its tables: what came out, then every part."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lexical_sae.report.dot_chart import dot_chart_file
from lexical_sae.report.evaluation_page import record_article, step_article
from lexical_sae.report.finding import Curve, DotPlot, Finding
from lexical_sae.report.line_chart import chart_file
from lexical_sae.report.page import page, render
from lexical_sae.report.tables import latex, markdown
from lexical_sae.text.write_rows import replacing

# how each of our figures begins, and hardly one that somebody put beside them
OURS = re.compile(
    r'\s*<svg xmlns="http://www\.w3\.org/2000/svg" viewBox="0 -\d+ \d+ \d+" '
    r'font-family="sans-serif"'
)


def write_study(
    folder: Path,
    title: str,
    lead: str,
    lines: Sequence[str],
    parts: Mapping[tuple[str, str], tuple[Finding, float]],
    record: Mapping[str, Any],
    environment: Mapping[str, Any],
    meanings: Mapping[str, Any] | None = None,
) -> list[Path]:
    """report.html, tables.md, tables.tex and every figure in figures/, where none of an earlier
    report stays. `lines` are what a reader must know; `parts` are findings with their seconds under
    (title, question); `meanings` are of the metrics that they hold."""
    articles = [render("evaluation_summary.html", lines=list(lines))]
    for (name, question), (finding, seconds) in parts.items():
        step = {"title": name, "question": question, "seconds": seconds, **finding.to_dict()}
        articles.append(step_article(step, meanings or {}))
    articles.append(record_article(record, environment))
    tables = [table for finding, _ in parts.values() for table in finding.tables]
    texts = {
        folder / "report.html": page(title, lead, articles),
        folder / "tables.md": markdown(tables),
        folder / "tables.tex": latex(tables),
    }
    drawn: list[Curve | DotPlot] = []
    for finding, _ in parts.values():
        drawn += [*finding.dots, *finding.curves]
    texts |= figures_of(drawn, folder / "figures")
    for file, text in texts.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(file) as scratch:
            scratch.write_text(text, encoding="utf-8")
    for file in (folder / "figures").glob("*.svg"):
        if file not in texts and OURS.match(file.read_text(encoding="utf-8", errors="replace")):
            file.unlink()
    return list(texts)


def figures_of(drawn: Sequence[Curve | DotPlot], folder: Path) -> dict[Path, str]:
    """Each figure that has points as an SVG file, named by its title."""
    found: dict[Path, str] = {}
    for figure in drawn:
        text = chart_file(figure) if isinstance(figure, Curve) else dot_chart_file(figure)
        if not text:
            continue
        plain = re.sub(r"[^a-z0-9]+", "-", figure.title.lower()).strip("-")[:60] or "figure"
        names = (f"{plain}{'' if i == 1 else f'-{i}'}.svg" for i in itertools.count(1))
        found[next(folder / name for name in names if folder / name not in found)] = text
    return found
