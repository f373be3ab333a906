"""Tagging: a tagger trained and evaluated, with a dense twin beside it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from lexical_sae.studies.experiment import ExperimentConfig, run_experiment

if TYPE_CHECKING:
    from rich.console import Console


class NerConfig(ExperimentConfig):
    """The same settings; steps that have no meaning for a tagger are left out of all steps."""

    study: Literal["ner"] = "ner"  # type: ignore[assignment]


def run_ner(config: NerConfig, folder: Path, console: Console) -> dict[str, Any]:
    return run_experiment(config, folder, console, "Tagging")
