"""Systems side by side: ours, the dense twin with its explainers, autoencoders, linear, SetFit."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lexical_sae.evaluation.autoencoder_step import TITLE as AUTOENCODERS
from lexical_sae.evaluation.bootstrap import mean_estimate, paired_p_value
from lexical_sae.evaluation.compared import removability_title
from lexical_sae.evaluation.explainers import AGAINST, AT_INPUT, OF_TWIN
from lexical_sae.report.finding import Cell, FindingTable
from lexical_sae.studies.cell_evaluation import evaluation_of, table_of
from lexical_sae.studies.grid import Outcome
from lexical_sae.studies.linear_baseline import NAME as LINEAR

COLUMNS = (
    *("system", "accuracy, %", "from", "to", "p against ours", "features per text"),
    *("NAOPC", "comprehensiveness", "sufficiency", "flipped without the top 5, %"),
    *("seconds to train", "ms to predict", "ms to explain"),
)
PEERS = ("LIME", "SHAP", "captum Integrated Gradients")
NOTHING = (None,) * 4


def systems_table(pair: tuple[Outcome, Outcome], folder: Path) -> FindingTable:
    """`pair` is our run and its dense twin."""
    ours, twin = pair
    evaluation = evaluation_of(folder / ours.cell.path)
    right = ours.found["right"]
    rows: list[tuple[Cell, ...]] = [
        (
            "ours, contributions",
            *_accuracy(right, right),
            ours.found["open_words"],
            *_judged(evaluation, AT_INPUT, AGAINST),
            *(ours.found["seconds"], ours.found["predict_ms"], ours.found["explain_ms"]),
        )
    ]
    seconds, each = twin.found["seconds"], twin.found["predict_ms"]
    for name in PEERS:
        judged = _judged(evaluation, OF_TWIN, name)
        if judged != NOTHING:
            told = (*_accuracy(twin.found["right"], right), None, *judged, seconds, each)
            rows.append((f"dense twin, {name}", *told, _milliseconds(evaluation, name)))
    if len(rows) == 1:
        accuracy = _accuracy(twin.found["right"], right)
        rows.append(("dense twin", *accuracy, None, *NOTHING, seconds, each, None))
    features = table_of(evaluation, "autoencoder", AUTOENCODERS)
    for row in features.rows[:-1] if features is not None else ():
        rows.append(
            (f"{row[0]} (SAE)", row[6], None, None, None, row[1], *NOTHING, None, None, None)
        )
    rows += _baselines(ours.found, right)
    return FindingTable(ours.cell.title, COLUMNS, tuple(rows))


def _baselines(found: Mapping[str, Any], right: str) -> list[tuple[Cell, ...]]:
    linear = found["linear"]
    table, removed = linear["tables"]
    judged = _row(table["rows"], LINEAR)
    flips = _row(removed["rows"], LINEAR)
    rows: list[tuple[Cell, ...]] = [
        (
            "linear on TF-IDF",
            *_accuracy(linear["right"], right),
            linear["open_features"],
            *((judged[2], judged[6], judged[7]) if judged else (None,) * 3),
            flips[2] if flips else None,
            *(linear["seconds"], linear["predict_ms"], judged[8] if judged else None),
        )
    ]
    if "setfit" in found:
        other = found["setfit"]
        accuracy, times = _accuracy(other["right"], right), (other["seconds"], other["predict_ms"])
        rows.append(("SetFit", *accuracy, None, *NOTHING, *times, None))
    return rows


def _accuracy(right: str, ours: str) -> tuple[Cell, ...]:
    own, other = (np.array([float(mark) for mark in marks]) for marks in (right, ours))
    found = mean_estimate(own)
    interval = [None if value is None else 100 * value for value in (found.low, found.high)]
    p = None if right == ours else paired_p_value(own, other)
    return (None if found.value is None else 100 * found.value, *interval, p)


def _judged(evaluation: dict[str, Any], title: str, name: str) -> tuple[Cell, ...]:
    """NAOPC, comprehensiveness, sufficiency and flips of an explainer at the input."""
    table = table_of(evaluation, "input", title)
    removed = table_of(evaluation, "input", removability_title(title))
    row = None if table is None else _row(table.rows, name)
    flips = None if removed is None else _row(removed.rows, name)
    if row is None:
        return NOTHING
    return (row[2], row[6], row[7], flips[2] if flips else None)


def _milliseconds(evaluation: dict[str, Any], name: str) -> Cell:
    table = table_of(evaluation, "input", OF_TWIN)
    row = None if table is None else _row(table.rows, name)
    return None if row is None else row[8]


def _row(rows: Any, name: str) -> Any:
    """By the explainer's name, to which may be added what it equals."""
    return next((row for row in rows if row[0] == name or row[0].startswith(f"{name} (")), None)


def system_lines(table: FindingTable) -> list[str]:
    """Ours first, then each of the others in one sentence."""
    ours = table.rows[0]
    lines = [f"{table.title}: ours is right on {ours[1]:.1f} % with {ours[5]:.0f} words."]
    for row in table.rows[1:]:
        if isinstance(row[1], float) and isinstance(ours[1], float):
            p = "" if row[4] is None else f" (p {row[4]:.2g})"
            said = f"{row[0]}: {row[1] - ours[1]:+.1f} points{p}"
            if isinstance(row[6], float) and isinstance(ours[6], float):
                said += f", NAOPC {row[6]:.2f} against {ours[6]:.2f}"
            if isinstance(row[12], (int, float)) and isinstance(ours[12], (int, float)):
                said += f", {row[12]:.3g} ms to explain against {ours[12]:.3g}"
            lines.append(f"{said}.")
    return lines
