"""``lexical-sae evaluate``: is the model right, and is the explanation true?"""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lexical_sae.commands.console import TopkPerPosition, Windows, plain
from lexical_sae.commands.train import measure_lines

if TYPE_CHECKING:
    from lexical_sae.evaluation.steps import Step
    from lexical_sae.evaluation.subject import Subject
    from lexical_sae.evaluation.suite import StepRecord
    from lexical_sae.model.dense_twin import DenseTwin
    from lexical_sae.model.lexical_sae import LexicalSAE
    from lexical_sae.text.dataset import TextDataset
    from lexical_sae.training.config import RunConfig


def evaluate(
    run: Annotated[Path, typer.Argument(help="Folder of a run or of a saved model.")],
    dataset: Annotated[
        str | None, typer.Option(help="Name, file, folder or hub:NAME; default the run's own.")
    ] = None,
    split: Annotated[str, typer.Option(help="Split to measure on.")] = "test",
    limit: Annotated[int | None, typer.Option(min=1, help="So many rows, evenly spread.")] = None,
    against: Annotated[
        Path | None, typer.Option(help="Run of the dense twin, to compare its explainers.")
    ] = None,
    steps: Annotated[
        str | None, typer.Option(help="Only these steps, separated by commas.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Folder of the result; default RUN/evaluation.")
    ] = None,
    peer_texts: Annotated[int, typer.Option(min=1, help="Texts for LIME, SHAP and others.")] = 50,
    circuit_fraction: Annotated[
        float | None, typer.Option(help="Of the words of a class in its circuit; default 0.1.")
    ] = None,
    circuit_mass: Annotated[
        float | None, typer.Option(help="Instead: share of |contribution| that a circuit holds.")
    ] = None,
    circuit_split: Annotated[
        str | None, typer.Option(help="Split that circuits come from; default train.")
    ] = None,
    tables: Annotated[
        bool, typer.Option("--tables", help="Also tables.md and tables.tex.")
    ] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Only accuracy, words, residual.")] = False,
    topk_per_position: TopkPerPosition = None,
    windows: Windows = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Measure a model: accuracy, circuits, faithfulness, and other explainers beside its own."""
    from lexical_sae.evaluation.circuit_choice import circuit_choice
    from lexical_sae.evaluation.drift import untrained_model
    from lexical_sae.evaluation.held_out import check_task, same_labels
    from lexical_sae.evaluation.reading import spread
    from lexical_sae.evaluation.steps import chosen_steps
    from lexical_sae.evaluation.subject import Subject
    from lexical_sae.report.evaluation_files import write_report
    from lexical_sae.report.evaluation_page import summary
    from lexical_sae.runs import config_of_run, load_run
    from lexical_sae.text.registry import load_splits
    from lexical_sae.training.run import run_splits

    config = config_of_run(run) if dataset is None else None
    name = dataset if config is None else config.dataset
    splits = load_splits(str(name)) if config is None else run_splits(config)
    if split not in splits:
        raise ValueError(f"{name} has no split {split!r}; expected one of {', '.join(splits)}.")
    chosen = (circuit_fraction, circuit_mass, circuit_split)
    if quick and any(value is not None for value in chosen):
        raise ValueError("--circuit-… are for the whole evaluation; leave out --quick or these.")
    circuits = circuit_choice(splits, split, *chosen)
    data = splits[split]
    if limit is not None:  # spread: the first rows of a sorted file may be of one class
        data = data.select(spread(len(data), limit))
    model = load_run(run, topk_per_position, windows)
    if quick:
        _measure(model, data, str(name), split, json)
        return
    check_task(model, data)
    if against is not None and model.config.task == "tagging":
        raise ValueError("--against is for classifiers; this model tags words.")
    train = splits.get("train") if split != "train" else None
    folder = output if output is not None else run / "evaluation"
    subject = Subject(
        model,
        same_labels(data, model.config.labels),
        None if train is None else same_labels(train, model.config.labels),
        None if against is None else _load_twin(against, model.config.labels),
        None if config is None else lambda: untrained_model(config, model),
        peer_texts=peer_texts,
        circuit_choice=circuits.with_labels(model.config.labels),
    )
    records = _run(subject, chosen_steps(steps, model.config.task), folder, config)
    found = json_module.loads((folder / "evaluation.json").read_text("utf-8"))
    written = write_report(
        found,
        folder,
        tables=tables,
        # a card of some of the steps, or of other data, would hide what is not good
        model_folder=run / "model" if config is not None and steps is None else None,
        model=None if config is None else _described(run, config, model),
    )
    if json:
        print(json_module.dumps(found, ensure_ascii=False))
    else:
        for line in [*summary(found), *_undone(records)]:
            plain(line)
        plain(f"written: {', '.join(map(str, [folder / 'evaluation.json', *written]))}")
    failed = [record for record in records if record.finding.failed]
    for record in failed:
        plain(f"{record.step.title} failed: {record.finding.failed}")
    if failed:
        raise typer.Exit(1)


def _described(run: Path, config: RunConfig, model: LexicalSAE) -> dict[str, Any]:
    name = run.resolve().name
    labels, recipe = list(model.config.labels), config.recipe
    return {"name": name, "labels": labels, "backbone": config.backbone, "recipe": recipe}


def _undone(records: list[StepRecord]) -> list[str]:
    """What the steps could not do, each in a line."""
    return [
        f"{record.step.title}: {note}"
        for record in records
        for note in record.finding.notes
        if note.startswith("Not ")
    ]


def _measure(model: LexicalSAE, data: TextDataset, name: str, split: str, json: bool) -> None:
    """The measures that training takes too."""
    from lexical_sae.evaluation.held_out import evaluate_model, notes_on

    found = evaluate_model(model, data)
    notes = notes_on(data)
    if json:
        plain(json_module.dumps({"dataset": name, "split": split, **found, "notes": notes}))
        return
    plain(f"{found['rows']:,} {'sentences' if 'f1' in found else 'texts'}")
    for line in measure_lines(found, split):
        plain(line)
    for kind, score in found.get("types", {}).items():
        plain(
            f"{kind}: F1 {100 * score['f1']:.1f} %, precision {100 * score['precision']:.1f} %, "
            f"recall {100 * score['recall']:.1f} % ({score['support']:,} entities)"
        )
    for note in notes:
        plain(note)


def _run(
    subject: Subject, steps: tuple[Step, ...], folder: Path, config: RunConfig | None
) -> list[StepRecord]:
    """The suite, with progress on the terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from lexical_sae.evaluation.suite import run_suite

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("reading", total=len(steps))

        def started(step: Step, place: int) -> None:
            progress.update(bar, completed=place, description=step.title)

        trained = None if config is None else config.model_dump(mode="json")
        return run_suite(subject, folder, steps, config=trained, started=started)


def _load_twin(run: Path, labels: list[str]) -> DenseTwin:
    from lexical_sae.evaluation.dense_states import twin_with_labels
    from lexical_sae.model.dense_twin import DenseTwin, DenseTwinConfig
    from lexical_sae.runs import model_folder_of

    folder = model_folder_of(run)
    kind = json_module.loads((folder / "config.json").read_text("utf-8")).get("model_type")
    if kind != DenseTwinConfig.model_type:
        raise ValueError(
            f"{run} holds a model of type {kind!r}; --against expects the run of a dense twin "
            "(lexical-sae train --dense-twin)."
        )
    return twin_with_labels(DenseTwin.from_pretrained(folder), labels)
