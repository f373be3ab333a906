"""``lexical-sae evaluate``: how well a model does on a labelled split."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import Annotated

import typer

from lexical_sae.commands.console import TopkPerPosition, plain
from lexical_sae.commands.train import measure_lines


def evaluate(
    run: Annotated[Path, typer.Argument(help="Folder of a run or of a saved model.")],
    dataset: Annotated[
        str | None, typer.Option(help="Name, file, folder or hub:NAME; default the run's own.")
    ] = None,
    split: Annotated[str, typer.Option(help="Split to measure on.")] = "test",
    limit: Annotated[int | None, typer.Option(min=1, help="Use the first rows only.")] = None,
    topk_per_position: TopkPerPosition = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Measure a model: accuracy, entities, open words, circuits, and the residual of the sum."""
    from lexical_sae.evaluation.held_out import evaluate_model
    from lexical_sae.runs import config_of_run, load_run
    from lexical_sae.text.registry import load_splits
    from lexical_sae.training.run import run_splits

    config = config_of_run(run) if dataset is None else None
    name = dataset if config is None else config.dataset
    splits = load_splits(str(name)) if config is None else run_splits(config)
    if split not in splits:
        raise ValueError(f"{name} has no split {split!r}; expected one of {', '.join(splits)}.")
    data = splits[split] if limit is None else splits[split].head(limit)
    found = evaluate_model(load_run(run, topk_per_position), data)
    if json:
        plain(json_module.dumps({"dataset": name, "split": split, **found}))
        return
    plain(f"{found['rows']:,} {'sentences' if 'f1' in found else 'texts'}")
    for line in measure_lines(found, split):
        plain(line)
    for kind, score in found.get("types", {}).items():
        plain(
            f"{kind}: F1 {100 * score['f1']:.1f} %, precision {100 * score['precision']:.1f} %, "
            f"recall {100 * score['recall']:.1f} % ({score['support']:,} entities)"
        )
