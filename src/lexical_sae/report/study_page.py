"""A study as one HTML file and its tables: what came out, then every part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lexical_sae.report.evaluation_page import record_article, step_article
from lexical_sae.report.finding import Finding
from lexical_sae.report.page import page, render
from lexical_sae.report.tables import latex, markdown
from lexical_sae.text.write_rows import replacing


def write_study(
    folder: Path,
    title: str,
    lead: str,
    lines: Sequence[str],
    parts: Mapping[tuple[str, str], tuple[Finding, float]],
    record: Mapping[str, Any],
    environment: Mapping[str, Any],
) -> list[Path]:
    """report.html, tables.md and tables.tex. `lines` are what a reader must know; `parts` are
    findings with their seconds under (title, question)."""
    articles = [render("evaluation_summary.html", lines=list(lines))]
    for (name, question), (finding, seconds) in parts.items():
        step = {"title": name, "question": question, "seconds": seconds, **finding.to_dict()}
        articles.append(step_article(step, {}))
    articles.append(record_article(record, environment))
    tables = [table for finding, _ in parts.values() for table in finding.tables]
    texts = {
        folder / "report.html": page(title, lead, articles),
        folder / "tables.md": markdown(tables),
        folder / "tables.tex": latex(tables),
    }
    for file, text in texts.items():
        with replacing(file) as scratch:
            scratch.write_text(text, encoding="utf-8")
    return list(texts)
