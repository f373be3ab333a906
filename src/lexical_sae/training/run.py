"""A training run from a config to its folder: model, config, metrics, history, curves."""

from __future__ import annotations

import shutil
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accelerate import PartialState
from rich.console import Console

from lexical_sae.report.curves import draw_curves
from lexical_sae.text.dataset import TextDataset
from lexical_sae.text.registry import load_splits
from lexical_sae.training.checkpoints import last_checkpoint
from lexical_sae.training.config import RunConfig, dump_config
from lexical_sae.training.environment import environment, write_json
from lexical_sae.training.fit import Fitted, check_task_settings, fit
from lexical_sae.training.history import HistoryCallback, read_history
from lexical_sae.training.progress import ProgressCallback

FORMAT = 1  # of metrics.json
LOGS = 200  # lines of history of a whole run, about


@dataclass(frozen=True)
class Data:
    """The splits of a run; `test` is None where the dataset has none."""

    train: TextDataset
    validation: TextDataset | None
    test: TextDataset | None


def run_splits(config: RunConfig) -> dict[str, TextDataset]:
    """Every split of a run's dataset, as the run reads it."""
    return load_splits(
        config.dataset,
        validation_fraction=config.validation_fraction,
        text_column=config.text_column,
        label_column=config.label_column,
        tokens_column=config.tokens_column,
        tags_column=config.tags_column,
    )


def load_data(config: RunConfig) -> Data:
    splits = run_splits(config)
    train = splits["train"]
    if config.train_rows is not None:
        train = _first_rows(train, config.train_rows)
    return Data(train, splits.get("validation"), splits.get("test"))


def _first_rows(train: TextDataset, rows: int) -> TextDataset:
    """The first rows, with a note if a sorted file makes them unlike the rest."""
    first = train.head(rows)
    counts, first_counts = train.label_counts(), first.label_counts()
    of, unit = ("their words", "words") if train.task == "tagging" else ("them", "rows")
    for name, count in counts.items():
        share = count / sum(counts.values())
        shown = first_counts[name] / sum(first_counts.values())
        if abs(share - shown) > 0.1:
            return first.with_notes(
                f"the first {len(first):,} rows are no fair sample: {100 * shown:.0f} % of {of}, "
                f"but {100 * share:.0f} % of all {unit}, are {name!r}"
            )
    return first


def train_run(
    config: RunConfig,
    folder: Path,
    *,
    console: Console,
    resume: bool = False,
    data: Data | None = None,
) -> dict[str, Any]:
    """Train and leave everything in `folder`; returns what metrics.json holds.

    A run that a signal stopped returns {"stopped": …} and can be resumed. Only the first of
    several processes prints and writes.
    """
    main = PartialState().is_main_process
    data = data if data is not None else load_data(config)
    check_task_settings(config, data.train.task)  # before anything is written
    if main:
        _start(config, folder, resume)
        for note in data.train.notes:
            console.print(f"note: {note}", markup=False, style="dim")
    history = HistoryCallback(folder / "history.jsonl")
    progress = ProgressCallback(console)
    log_every = max(1, int(config.settings.epochs * len(data.train) / 32 / LOGS))
    with progress, warnings.catch_warnings():
        # of torch's scheduler and of DDP, about what transformers does by itself
        warnings.filterwarnings("ignore", module=r"(torch|transformers|accelerate)\b.*")
        fitted = fit(
            config,
            data.train,
            data.validation,
            folder,
            held_out=data.test,
            callbacks=[history, progress],
            resume=resume,
            log_every=min(10, log_every),
            say=lambda message: console.print(message, markup=False) if main else None,
        )
    if fitted.stopped is not None:
        return {"stopped": fitted.stopped, "steps": fitted.steps}
    metrics = _metrics(config, data, fitted)
    if main:
        _finish(config, folder, fitted, metrics)
    return metrics


def _start(config: RunConfig, folder: Path, resume: bool) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if resume:
        if last_checkpoint(folder / "checkpoints") is None:
            raise ValueError(
                f"{folder} has no complete checkpoint to resume from; start anew without --resume."
            )
        return
    (folder / "config.yaml").write_text(dump_config(config), encoding="utf-8")
    write_json(folder / "environment.json", environment({"seed": config.settings.seed}))


def _metrics(config: RunConfig, data: Data, fitted: Fitted) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "dataset": config.dataset,
        "recipe": "dense twin" if config.dense_twin else config.recipe,
        "backbone": config.backbone,
        "labels": list(data.train.label_names),
        "rows": {"train": len(data.train), "test": len(data.test) if data.test else 0},
        "test": fitted.held_out,
        "validation": fitted.validation,
        "steps": fitted.steps,
        "batch_size": fitted.batch_size,
        "max_length": fitted.max_length,
        "learning_rate": fitted.learning_rate,
        "seconds": fitted.seconds,
    }


def _finish(config: RunConfig, folder: Path, fitted: Fitted, metrics: dict[str, Any]) -> None:
    fitted.model.save_pretrained(folder / "model")
    write_json(folder / "metrics.json", metrics)
    draw_curves(
        read_history(folder / "history.jsonl"),
        folder / "curves.png",
        f"{config.dataset}, {metrics['recipe']}",
        target_words=None if config.dense_twin else config.settings.target_words,
    )
    # a finished run has nothing to resume, and a checkpoint is three times the model
    shutil.rmtree(folder / "checkpoints", ignore_errors=True)
    shutil.rmtree(folder / "best", ignore_errors=True)
