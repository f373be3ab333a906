"""The files that people read of an evaluation: report, tables, model card."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lexical_sae.report.evaluation_page import evaluation_page
from lexical_sae.report.model_card import model_card
from lexical_sae.report.tables import latex, markdown, tables_of
from lexical_sae.text.write_rows import replacing


def write_report(
    evaluation: Mapping[str, Any],
    folder: Path,
    *,
    tables: bool = False,
    model_folder: Path | None = None,
    model: Mapping[str, Any] | None = None,
) -> list[Path]:
    """Write and name them; a model card only beside a model on disk, which `model` describes."""
    texts = {folder / "report.html": evaluation_page(evaluation)}
    if tables:
        found = list(tables_of(evaluation))
        texts |= {folder / "tables.md": markdown(found), folder / "tables.tex": latex(found)}
    if model_folder is not None and model is not None:
        texts[model_folder / "README.md"] = model_card(evaluation, model)
    for file, text in texts.items():
        with replacing(file) as scratch:
            scratch.write_text(text, encoding="utf-8")
    return list(texts)
