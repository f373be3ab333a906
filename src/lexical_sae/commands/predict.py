"""``lexical-sae predict``: a label for every row of a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from lexical_sae.commands.console import TopkPerPosition, Windows, plain

if TYPE_CHECKING:
    from lexical_sae.prediction_files import PredictionSummary

SHOWN = 5
"""Skipped rows that are named."""


def predict(
    run: Annotated[Path, typer.Argument(help="Folder of a run or of a saved model.")],
    input: Annotated[Path, typer.Option(help="CSV, TSV, JSON Lines or parquet file of texts.")],
    output: Annotated[Path, typer.Option(help="File to write, in any of these formats.")],
    text_column: Annotated[str | None, typer.Option(help="Column of the text.")] = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Texts per batch.")] = 32,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Leave out bad rows.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the output.")] = False,
    policy: Annotated[
        Path | None, typer.Option(help="YAML of words that may not carry a decision.")
    ] = None,
    codes: Annotated[Path | None, typer.Option(help="YAML of reason codes.")] = None,
    topk_per_position: TopkPerPosition = None,
    windows: Windows = None,
) -> None:
    """Write each row of a file again, with its predicted label, probability and open words; for a
    tagger with its words, their tags and the entities."""
    from lexical_sae.prediction_files import check_files, predict_file
    from lexical_sae.runs import load_run, model_folder_of

    check_files(input, output, overwrite=overwrite)
    model_folder_of(run)
    model = load_run(run, topk_per_position, windows)
    with _Bar() as bar:
        summary = predict_file(
            model,
            input,
            output,
            text_column=text_column,
            batch_size=batch_size,
            skip_bad=skip_bad,
            overwrite=overwrite,
            policy=policy,
            codes=codes,
            progress=bar.show,
        )
    _report(summary, output)


class _Bar:
    """A bar on the terminal behind stderr; in a pipe or a log there is none."""

    def __init__(self) -> None:
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        console = Console(stderr=True)
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self.task = self.progress.add_task("reading", total=None)

    def __enter__(self) -> _Bar:
        self.progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.progress.stop()

    def show(self, done: int, total: int) -> None:
        self.progress.update(self.task, description="predicting", completed=done, total=total)


def _report(summary: PredictionSummary, output: Path) -> None:
    for note in summary.notes:
        plain(f"note: {note}")
    if summary.truncated:
        plain(
            f"note: {summary.truncated:,} texts are longer than the model reads; ends not seen "
            "(--windows reads them)"
        )
    for bad in summary.first_skipped[:SHOWN]:
        plain(f"skipped {bad}")
    if summary.skipped > SHOWN:
        plain(f"skipped {summary.skipped - SHOWN:,} more")
    unit = "word" if summary.task == "tagging" else "text"
    speed = summary.predicted / summary.seconds
    plain(
        f"{summary.predicted:,} rows predicted, {summary.skipped:,} skipped; {speed:,.1f} rows a "
        f"second, {summary.open_words:.1f} open words per {unit}"
    )
    if summary.abstained:
        plain(f"{summary.abstained:,} of them abstain, by the policy")
    plain(f"saved to {output}")
