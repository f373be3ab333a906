"""The systems of a comparison, each with its rows and its numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lexical_sae.evaluation.compared import NAOPC, removability_title
from lexical_sae.evaluation.explainers import AGAINST, AT_INPUT, OF_TWIN
from lexical_sae.report.finding import Cell
from lexical_sae.studies import autoencoder_baseline, linear_baseline
from lexical_sae.studies.cell_evaluation import evaluation_of, table_of
from lexical_sae.studies.grid import Outcome

PEERS = ("LIME", "SHAP", "captum Integrated Gradients")
NUMBERS = (
    *("features per text", NAOPC, "comprehensiveness", "sufficiency"),
    *("flipped without the top 5, %", "seconds to train", "ms to predict", "ms to explain"),
)
NOTHING: tuple[Cell, ...] = (None,) * 4


@dataclass(frozen=True)
class System:
    """`right` has a 1 or a 0 for every row; `numbers` are those that `NUMBERS` names."""

    name: str
    right: str
    numbers: tuple[Cell, ...]


def systems_of(pair: tuple[Outcome, Outcome], folder: Path) -> list[System]:
    """Ours first. `pair` is our run and its dense twin."""
    ours, twin = pair
    evaluation = evaluation_of(folder / ours.cell.path)
    found, dense = ours.found, twin.found
    times = (found["seconds"], found["predict_ms"], found["explain_ms"])
    judged = _judged(evaluation, AT_INPUT, AGAINST)
    systems = [
        System("ours, contributions", found["right"], (found["open_words"], *judged, *times))
    ]
    costs = (dense["seconds"], dense["predict_ms"])
    for name in PEERS:
        judged = _judged(evaluation, OF_TWIN, name)
        if judged != NOTHING:
            told = (None, *judged, *costs, _milliseconds(evaluation, name))
            systems.append(System(f"dense twin, {name}", dense["right"], told))
    if len(systems) == 1:
        systems.append(System("dense twin", dense["right"], (None, *NOTHING, *costs, None)))
    for kind, one in found["autoencoders"].items():
        kept = _kept(one["tables"], autoencoder_baseline.NAME)
        # a system of its own needs the twin first
        times = (dense["seconds"] + one["seconds"], one["predict_ms"], one["explain_ms"])
        told = (one["open_features"], *kept, *times)
        systems.append(System(f"{kind} on the twin (SAE)", one["right"], told))
    return systems + _baselines(found)


def _baselines(found: Mapping[str, Any]) -> list[System]:
    linear = found["linear"]
    kept = _kept(linear["tables"], linear_baseline.NAME)
    judged = _row(linear["tables"][0]["rows"], linear_baseline.NAME)
    costs = (linear["seconds"], linear["predict_ms"], judged[8] if judged else None)
    numbers = (linear["open_features"], *kept, *costs)
    systems = [System("linear on TF-IDF", linear["right"], numbers)]
    if "setfit" in found:
        other = found["setfit"]
        times = (other["seconds"], other["predict_ms"], None)
        systems.append(System("SetFit", other["right"], (None, *NOTHING, *times)))
    return systems


def _kept(tables: Any, name: str) -> tuple[Cell, ...]:
    """The same of a baseline that was judged on its own."""
    judged, flips = (_row(table["rows"], name) for table in tables)
    if judged is None:
        return NOTHING
    return (judged[2], judged[6], judged[7], flips[2] if flips else None)


def _judged(evaluation: dict[str, Any], title: str, name: str) -> tuple[Cell, ...]:
    """NAOPC, comprehensiveness, sufficiency and flips of an explainer at the input. Systems stand
    side by side, so no NAOPC whose limits are those of the orders that one of them tried."""
    table = table_of(evaluation, "input", title)
    removed = table_of(evaluation, "input", removability_title(title))
    row = None if table is None else _row(table.rows, name)
    flips = None if removed is None else _row(removed.rows, name)
    if table is None or row is None:
        return NOTHING
    naopc = row[2] if table.columns[2] == NAOPC else None
    return (naopc, row[6], row[7], flips[2] if flips else None)


def _milliseconds(evaluation: dict[str, Any], name: str) -> Cell:
    table = table_of(evaluation, "input", OF_TWIN)
    row = None if table is None else _row(table.rows, name)
    return None if row is None else row[8]


def _row(rows: Any, name: str) -> Any:
    """By the explainer's name, to which may be added what it equals."""
    return next((row for row in rows if row[0] == name or row[0].startswith(f"{name} (")), None)
