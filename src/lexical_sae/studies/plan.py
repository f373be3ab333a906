"""The plan of a study: every run and what it would take; nothing is fetched, trained or written."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from lexical_sae.studies.cell_data import some_rows
from lexical_sae.studies.cells import Cell
from lexical_sae.studies.grid import finished
from lexical_sae.studies.planned_model import Planned, backbone_at_hand, plan_run
from lexical_sae.text.dataset import TextDataset
from lexical_sae.text.registry import splits_at_hand
from lexical_sae.training.config import RunConfig

GIB = 2**30


def plan_lines(cells: Sequence[Cell], folder: Path, train_rows: int | None = None) -> list[str]:
    """Datasets, then cells, then how many runs there are."""
    data: dict[str, dict[str, TextDataset] | None] = {}
    planned: dict[str, str] = {}
    lines: list[str] = []
    runs: list[str] = []
    for place, cell in enumerate(cells, 1):
        start = f"[{place}/{len(cells)}] {cell.title}: "
        try:
            config = cell.config()
            rows = json.dumps(config.model_dump(exclude={"settings", "backbone", "recipe"}))
            if rows not in data:
                data[rows] = _splits(config, train_rows)
                line = _rows(config, data[rows])
                lines += [line] if line not in lines else []
            alike = rows + _what_counts(config)
            if alike not in planned:
                planned[alike] = _size(config, data[rows])
            runs.append(start + planned[alike] + (", finished" if finished(cell, folder) else ""))
        except (ValueError, OSError, ImportError) as error:
            runs.append(f"{start}cannot run: {error}")
    done = sum(line.endswith(", finished") for line in runs)
    end = f"{len(cells)} runs, {done} of them finished; nothing was fetched, trained or written"
    return [*lines, *runs, end]


def _what_counts(config: RunConfig) -> str:
    """The settings that the size of a run follows from: most arms and all seeds share them."""
    own = {"model", "target_words", "start_words", "batch_size", "max_length"}
    return config.backbone + config.settings.model_dump_json(include=own)


def _splits(config: RunConfig, train_rows: int | None) -> dict[str, TextDataset] | None:
    """As far as they are here, with the training rows that the study uses."""
    found = splits_at_hand(
        config.dataset,
        validation_fraction=config.validation_fraction,
        text_column=config.text_column,
        label_column=config.label_column,
        tokens_column=config.tokens_column,
        tags_column=config.tags_column,
    )
    if found is None:
        return None
    train = found["train"]
    if config.train_rows is not None:
        train = train.head(config.train_rows)
    return {**found, "train": some_rows(train, train_rows)}


def _rows(config: RunConfig, splits: dict[str, TextDataset] | None) -> str:
    if splits is None:
        return f"{config.dataset}: not here; rows and lengths are not known without the hub"
    sizes = {name: len(split) for name, split in splits.items()}
    unit = "sentences" if splits["train"].task == "tagging" else "texts"
    told = ", ".join(f"{size:,} {name}" for name, size in sizes.items())
    return f"{config.dataset}: {told} {unit}, {len(splits['train'].label_names)} labels"


def _size(config: RunConfig, splits: dict[str, TextDataset] | None) -> str:
    folder = backbone_at_hand(config.backbone)
    if folder is None:
        return f"{config.backbone} is not here; its size is not known without the hub"
    train = None if splits is None else splits["train"]
    return told(plan_run(config, folder, train), train is not None)


def told(planned: Planned, read: bool) -> str:
    """`read`: whether the texts were there to take lengths from."""
    memory = (
        "memory not estimated for a dense twin"
        if planned.memory is None
        else f"about {planned.memory / GIB:.1f} GiB"
    )
    up_to = "up to" if read else "at most"
    return (
        f"{planned.parameters / 1e6:.1f}M parameters, batches of {planned.batch_size} texts of "
        f"{up_to} {planned.length} tokens, {memory}"
    )
