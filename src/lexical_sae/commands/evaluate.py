"""``lexical-sae evaluate``: how well a model does on a labelled split."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import Annotated, Any

import typer

from lexical_sae.commands.console import plain


def evaluate(
    run: Annotated[Path, typer.Argument(help="Folder of a run or of a saved model.")],
    dataset: Annotated[
        str | None, typer.Option(help="Name, file, folder or hub:NAME; default the run's own.")
    ] = None,
    split: Annotated[str, typer.Option(help="Split to measure on.")] = "test",
    limit: Annotated[int | None, typer.Option(min=1, help="Use the first rows only.")] = None,
    topk_per_position: Annotated[
        int | None, typer.Option(min=1, help="Keep only so many open words per token.")
    ] = None,
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
    model = load_run(run)
    if topk_per_position is not None:
        model.keep_per_position(topk_per_position)
    found = evaluate_model(model, data)
    if json:
        plain(json_module.dumps({"dataset": name, "split": split, **found}))
        return
    for line in _lines(found):
        plain(line)


def _lines(found: dict[str, Any]) -> list[str]:
    tagging = "f1" in found
    unit = "word" if tagging else "text"
    lines = [f"{found['rows']:,} {'sentences' if tagging else 'texts'}"]
    if tagging:
        for name, score in [("all entities", found), *found["types"].items()]:
            lines.append(
                f"{name}: F1 {100 * score['f1']:.2f}, precision {100 * score['precision']:.2f}, "
                f"recall {100 * score['recall']:.2f} ({score['support']:,} entities)"
            )
    lines.append(f"accuracy per {unit}: {100 * found['accuracy']:.2f} %")
    lines.append(f"open words per {unit}: {found['open_words']:.1f}")
    lines.append(
        f"decisions that the circuit alone keeps: {100 * found['circuit_agreement']:.1f} %"
    )
    lines.append(f"largest residual of the sum: {found['max_residual']:.1e}")
    return lines
