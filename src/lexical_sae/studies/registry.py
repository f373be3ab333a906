"""The kinds of study: what each is about, its settings, and what runs it.

The files of the studies import what is heavy when they run, so that a list of them costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lexical_sae.studies import (
    ablation,
    bcos_ablation,
    experiment,
    faithfulness,
    long_context_config,
    multi_dataset,
    ner,
    sota_comparison,
    sparsity_frontier,
    surgery_config,
    wic_config,
)
from lexical_sae.studies.cells import Cell
from lexical_sae.studies.needs import Need
from lexical_sae.studies.strict import StudyConfig

if TYPE_CHECKING:
    from rich.console import Console

    from lexical_sae.training.config import RunConfig
    from lexical_sae.training.run import Data

Run = Callable[[Any, Path, "Console"], dict[str, Any]]


def _rows(config: Any, run: RunConfig, found: Data) -> Data:
    from lexical_sae.studies.cell_data import Rows, cell_rows

    return cell_rows(run, found, Rows(config.train_rows, getattr(config, "held_out_rows", None)))


@dataclass(frozen=True)
class Study:
    """`cells` are the training runs of a config; `run` returns what results.json holds. `needs` are
    the datasets that are read besides, `rows` the splits of a run as the study uses them."""

    about: str
    config: type[StudyConfig]
    run: Run
    cells: Callable[[Any], list[Cell]] = lambda config: list(config.cells())
    needs: Callable[[Any], list[Need]] = lambda config: []
    rows: Callable[[Any, RunConfig, Data], Data] = _rows


def _surgery(config: Any, folder: Path, console: Console) -> dict[str, Any]:
    from lexical_sae.studies.repeated import run_by_seed
    from lexical_sae.studies.surgery import run_surgery
    from lexical_sae.studies.surgery_summary import OVER_SEEDS

    return run_by_seed(config, folder, console, run_surgery, OVER_SEEDS)


def _surgery_rows(config: Any, run: RunConfig, found: Data) -> Data:
    from lexical_sae.studies.surgery_data import task_rows

    return task_rows(config, run, found)


def _long_context(config: Any, folder: Path, console: Console) -> dict[str, Any]:
    from lexical_sae.studies.long_context import run_long_context
    from lexical_sae.studies.long_context_summary import OVER_SEEDS
    from lexical_sae.studies.repeated import run_by_seed

    return run_by_seed(config, folder, console, run_long_context, OVER_SEEDS)


def _wic(config: Any, folder: Path, console: Console) -> dict[str, Any]:
    from lexical_sae.studies.wic import run_wic

    return run_wic(config, folder, console)


STUDIES: dict[str, Study] = {
    "experiment": Study(
        "train one model and evaluate it in full, with its dense twin beside it",
        experiment.ExperimentConfig,
        experiment.run_experiment,
    ),
    "ablation": Study(
        "what each term of the objective brings, and the published recipes at the same budget",
        ablation.AblationConfig,
        ablation.run_ablation,
    ),
    "multi_dataset": Study(
        "datasets, backbones and recipes in one table",
        multi_dataset.MultiDatasetConfig,
        multi_dataset.run_multi_dataset,
    ),
    "sparsity_frontier": Study(
        "accuracy against open words, trained for each number and turned at inference",
        sparsity_frontier.FrontierConfig,
        sparsity_frontier.run_frontier,
    ),
    "sota_comparison": Study(
        "against the dense twin with LIME, SHAP and IG, autoencoders, TF-IDF and SetFit",
        sota_comparison.SotaConfig,
        sota_comparison.run_sota,
    ),
    "faithfulness": Study(
        "what decisions lose without the words that each explainer names",
        faithfulness.FaithfulnessConfig,
        faithfulness.run_faithfulness,
    ),
    "ner": Study(
        "train a tagger and evaluate it, with its dense twin beside it",
        ner.NerConfig,
        ner.run_ner,
    ),
    "bcos_ablation": Study(
        "the ReLU head against B-cos heads and a linear one",
        bcos_ablation.BcosConfig,
        bcos_ablation.run_bcos,
    ),
    "surgery": Study(
        "find the words behind a gap between groups, cut them out, compare with LEACE",
        surgery_config.SurgeryConfig,
        _surgery,
        surgery_config.surgery_cells,
        surgery_config.surgery_needs,
        _surgery_rows,
    ),
    "long_context": Study(
        "a needle of evidence in long neutral texts, read in windows, against the dense twin",
        long_context_config.LongContextConfig,
        _long_context,
        long_context_config.long_context_cells,
    ),
    "wic": Study(
        "words with several coordinates: do they tell senses apart, and what do they cost?",
        wic_config.WicConfig,
        _wic,
        wic_config.wic_cells,
        wic_config.wic_needs,
    ),
}
