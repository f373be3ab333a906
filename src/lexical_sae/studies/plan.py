"""The plan of a study: every run and what it would take; nothing is fetched, trained or written."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from lexical_sae.studies.cell_data import Rows, cell_rows, some_rows
from lexical_sae.studies.cells import Cell
from lexical_sae.studies.grid import finished
from lexical_sae.studies.planned_model import Planned, backbone_at_hand, plan_run
from lexical_sae.text.dataset import TextDataset
from lexical_sae.text.registry import splits_at_hand
from lexical_sae.training.config import RunConfig
from lexical_sae.training.run import Data

GIB = 2**30


def plan_lines(
    cells: Sequence[Cell], folder: Path, rows: Rows | None = None, train_rows: int | None = None
) -> list[str]:
    """Datasets, then cells, then how many runs there are. `rows` are those of a grid; a study of
    another kind uses its splits as they are, but for its training rows."""
    data: dict[str, dict[str, TextDataset] | None] = {}
    planned: dict[str, str] = {}
    lines: list[str] = []
    runs: list[str] = []
    for place, cell in enumerate(cells, 1):
        start = f"[{place}/{len(cells)}] {cell.title}: "
        try:
            config = cell.config()
            key = json.dumps(config.model_dump(exclude={"settings", "backbone", "recipe"}))
            if key not in data:
                data[key] = _splits(config, rows, train_rows)
                line = _rows(config, data[key])
                lines += [line] if line not in lines else []
            alike = key + _what_counts(config)
            if alike not in planned:
                planned[alike] = _size(config, data[key])
            runs.append(start + planned[alike] + (", finished" if finished(cell, folder) else ""))
        except (ValueError, OSError, ImportError) as error:
            runs.append(f"{start}cannot run: {error}")
    done = sum(line.endswith(", finished") for line in runs)
    end = f"{len(cells)} runs, {done} of them finished; nothing was trained or written"
    return [*lines, *runs, end]


def _what_counts(config: RunConfig) -> str:
    """The settings that the size of a run follows from: most arms and all seeds share them."""
    own = {"model", "target_words", "start_words", "batch_size", "max_length"}
    return config.backbone + config.settings.model_dump_json(include=own)


def _splits(
    config: RunConfig, rows: Rows | None, train_rows: int | None
) -> dict[str, TextDataset] | None:
    """As far as they are here, with the rows that the study uses."""
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
    if rows is not None:
        used = cell_rows(config, Data(train, found.get("validation"), found.get("test")), rows)
        named = {"train": used.train, "validation": used.validation, "test": used.test}
        return {name: split for name, split in named.items() if split is not None}
    return {**found, "train": some_rows(train, train_rows)}


def _rows(config: RunConfig, splits: dict[str, TextDataset] | None) -> str:
    if splits is None:
        return f"{config.dataset}: not here yet; its rows and lengths are known once it is"
    sizes = {name: len(split) for name, split in splits.items()}
    unit = "sentences" if splits["train"].task == "tagging" else "texts"
    told = ", ".join(f"{size:,} {name}" for name, size in sizes.items())
    return f"{config.dataset}: {told} {unit}, {len(splits['train'].label_names)} labels"


def _size(config: RunConfig, splits: dict[str, TextDataset] | None) -> str:
    train = None if splits is None else splits["train"]
    planned = plan_run(config, backbone_at_hand(config.backbone), train)
    if planned is None:
        return f"{config.backbone} is not here yet; its size is known once it is"
    return told(planned, train is not None, twin=config.dense_twin)


def told(planned: Planned, read: bool, *, twin: bool = False) -> str:
    """`read`: whether the texts were there to take lengths from."""
    size = f"{planned.parameters / 1e6:.1f}M parameters"
    memory = f"{planned.memory / GIB:.1f} GiB"
    length = f"{'up to' if read and not planned.by_config else 'at most'} {planned.length} tokens"
    batches = f"batches of {planned.batch_size} texts of {length}"
    if planned.by_config:
        most = "" if twin else "at most "  # how many words a dictionary has, a config does not say
        return f"{most}{size} by its published config, {batches}, {most}about {memory}"
    return f"{size}, {batches}, about {memory}"
