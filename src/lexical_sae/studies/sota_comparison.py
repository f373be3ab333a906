"""Ours against what others use: accuracy, faithfulness, features and seconds, in one table."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from lexical_sae.studies.experiment import OURS, TWIN
from lexical_sae.studies.grid_config import GridConfig, Settings

if TYPE_CHECKING:
    from rich.console import Console

    from lexical_sae.report.finding import Finding, FindingTable
    from lexical_sae.studies.grid import Outcome, TrainedCell

NOTES = (
    "Faithfulness at the words of the input: features of a text are masked in the order of the "
    "explanation. NAOPC is 0 for the worst and 1 for the best order of the same features of the "
    "same model, as far as a beam search finds them; where texts are too long for one it is left "
    "out, since without such limits it may not be compared between systems. Comprehensiveness and "
    "sufficiency depend on how certain a model is. The time to explain is that of one text alone.",
    "Of the linear model and the autoencoders the features themselves are left out, since that is "
    "what they name. An autoencoder decides by the state that it restores: its faithfulness is "
    "that of this decision, not of the twin's. Its seconds to train hold those of the twin.",
    "Intervals of accuracy and of differences (95 %) are over rows; of means over seeds they are "
    "over seeds and rows, both drawn anew, the same rows for all seeds. p is that of a sign-flip "
    "test over rows of the mean over seeds.",
)
STEPS = ("task", "input")


class SotaConfig(GridConfig):
    study: Literal["sota_comparison"] = "sota_comparison"
    peer_texts: Annotated[int, Field(ge=1)] = 50  # that LIME, SHAP and others explain
    fitted_rows: Annotated[int, Field(ge=60)] | None = None  # for autoencoders; null: 2,000
    setfit: bool = True  # where it is installed
    setfit_steps: Annotated[int, Field(ge=1)] = 200

    def arms(self) -> dict[str, Settings]:
        """The twin first: the evaluation of the other needs it."""
        return {TWIN: {"dense_twin": True}, OURS: {}}


def run_sota(config: SotaConfig, folder: Path, console: Console) -> dict[str, Any]:
    from lexical_sae.evaluation.explainers import missing
    from lexical_sae.studies.cell_evaluation import check_of
    from lexical_sae.studies.grid import run_grid
    from lexical_sae.studies.grid_report import rows_of, write_grid
    from lexical_sae.studies.setfit_baseline import missing_setfit

    def measure(trained: TrainedCell) -> dict[str, Any]:
        return _of_twin(trained) if trained.cell.arm == TWIN else _of_ours(trained, config, folder)

    clock = time.perf_counter()
    left_out = missing_setfit() if config.setfit else "SetFit is switched off (setfit: false)."
    options = {
        **{"peer_texts": config.peer_texts, "setfit": config.setfit and not left_out},
        "setfit_steps": config.setfit_steps,
        "fitted_rows": config.fitted_rows,
        "not_installed": list(missing()),
        "autoencoders": True,
    }
    cells, rows = config.cells(), rows_of(config)
    check = check_of(STEPS)
    outcomes = run_grid(cells, folder, console, measure, rows=rows, options=options, check=check)
    found, lines = _compared(_pairs(outcomes), folder)
    lines += [left_out] if left_out else []
    lines += [
        f"SetFit failed ({one.cell.title}): {one.found['setfit_failed']}."
        for one in outcomes
        if "setfit_failed" in one.found
    ]
    parts = {("Systems", "What does each reach, and cost?"): (found, time.perf_counter() - clock)}
    return write_grid(config, folder, console, "Comparison", outcomes, lines, parts)


def _compared(pairs: Sequence[tuple[Outcome, Outcome]], folder: Path) -> tuple[Finding, list[str]]:
    """Of every dataset and backbone the means over seeds, then a table of every run. What is said
    of the systems is said of the means where there are several seeds."""
    from lexical_sae.report.finding import Finding
    from lexical_sae.studies.places import place_names, place_of
    from lexical_sae.studies.systems import System, systems_of
    from lexical_sae.studies.systems_table import (
        means_table,
        system_lines,
        systems_figure,
        systems_table,
    )

    runs: dict[str, list[list[System]]] = {}
    single: dict[str, list[FindingTable]] = {}
    places = place_names(ours.cell for ours, _ in pairs)
    for pair in pairs:
        cell = pair[0].cell
        systems, where = systems_of(pair, folder), places[place_of(cell)]
        runs.setdefault(where, []).append(systems)
        table = systems_table(f"{where}, seed {cell.seed}", systems)
        single.setdefault(where, []).append(table)
    means = {
        where: means_table(f"{where}: means over {len(found)} seeds", found)
        for where, found in runs.items()
        if len(found) > 1
    }
    lines = [
        line for where, each in single.items() for line in system_lines(means.get(where, each[0]))
    ]
    tables = [table for each in single.values() for table in each]
    figures = [systems_figure(f"Systems on {where}", found) for where, found in runs.items()]
    return Finding(tables=(*means.values(), *tables), dots=tuple(figures), notes=NOTES), lines


def _of_twin(trained: TrainedCell) -> dict[str, Any]:
    from lexical_sae.evaluation.dense_states import dense_states
    from lexical_sae.studies.cell_measures import basic_measures

    found = basic_measures(trained)
    start = time.perf_counter()
    dense_states(trained.twin, trained.test.texts)
    return {**found, "predict_ms": _each(start, len(trained.test))}


def _of_ours(trained: TrainedCell, config: SotaConfig, folder: Path) -> dict[str, Any]:
    """The model itself, and the baselines that need no backbone of their own."""
    from lexical_sae.attribution.explain import explain_many
    from lexical_sae.evaluation.explainers import input_texts
    from lexical_sae.evaluation.reading import read_texts
    from lexical_sae.model.dense_twin import DenseTwin
    from lexical_sae.studies.autoencoder_baseline import autoencoder_baselines
    from lexical_sae.studies.cell_evaluation import evaluate_cell, subject_of, twin_folder
    from lexical_sae.studies.cell_measures import basic_measures
    from lexical_sae.studies.grid import reason
    from lexical_sae.studies.linear_baseline import linear_baseline
    from lexical_sae.studies.setfit_baseline import missing_setfit, setfit_baseline

    beside = twin_folder(trained.cell, folder, TWIN)
    if beside is None:
        raise ValueError("The dense twin of this run has not been trained; see why it failed.")
    twin = DenseTwin.from_pretrained(beside / "model")
    evaluate_cell(trained, STEPS, peer_texts=config.peer_texts, twin=twin)
    found, test = basic_measures(trained), trained.test
    start = time.perf_counter()
    read_texts(trained.model, test.texts, test.labels)
    found["predict_ms"] = _each(start, len(test))
    subject = subject_of(trained, config.peer_texts, config.fitted_rows)
    some = subject.some_texts(input_texts(subject))
    start = time.perf_counter()
    for place in some:  # one at a time, as the other explainers take them
        explain_many(trained.model, [test.texts[place]])
    found["explain_ms"] = _each(start, len(some))
    trained.console.print("autoencoders on the dense twin", style="dim")
    found["autoencoders"] = autoencoder_baselines(
        twin, subject.train_sample, test, some, max(1, round(found["open_words"])), subject.seed
    )
    trained.console.print("linear model on TF-IDF", style="dim")
    found["linear"] = linear_baseline(trained.train, test, some, trained.cell.seed)
    if config.setfit and not missing_setfit():
        trained.console.print("SetFit", style="dim")
        try:
            found["setfit"] = setfit_baseline(
                trained.config, trained.train, test, config.setfit_steps
            )
        except Exception as error:  # another package's trouble is no failure of our run
            found["setfit_failed"] = reason(error)
    return found


def _each(start: float, texts: int) -> float:
    """Milliseconds per text since `start`."""
    return 1000 * (time.perf_counter() - start) / max(1, texts)


def _pairs(outcomes: Sequence[Outcome]) -> list[tuple[Outcome, Outcome]]:
    """Ours with the twin of the same dataset, backbone and seed, where both finished."""
    done = {_key(one): one for one in outcomes if one.cell.arm == TWIN and not one.failed}
    ours = [one for one in outcomes if one.cell.arm == OURS and not one.failed]
    return [(one, done[_key(one)]) for one in ours if _key(one) in done]


def _key(one: Outcome) -> tuple[str, str, int]:
    return one.cell.dataset, one.cell.backbone, one.cell.seed
