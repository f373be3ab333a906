"""The command line: one app, its commands, and what bad input gets.

The commands import what is heavy when they are called.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.console import Console

from lexical_sae import __version__
from lexical_sae.commands.build import build
from lexical_sae.commands.certify import certify, verify
from lexical_sae.commands.console import out
from lexical_sae.commands.data import data, datasets
from lexical_sae.commands.demo import demo
from lexical_sae.commands.diff import diff
from lexical_sae.commands.evaluate import evaluate
from lexical_sae.commands.explain import explain
from lexical_sae.commands.overview import overview
from lexical_sae.commands.predict import predict
from lexical_sae.commands.recipes import recipes
from lexical_sae.commands.run import run
from lexical_sae.commands.suppress import restore, suppress
from lexical_sae.commands.train import train
from lexical_sae.commands.words import words

app = typer.Typer(
    name="lexical-sae",
    help="Text classifiers and taggers whose every decision is a short, exact sum over words.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        out.print(__version__)
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Version.")
    ] = False,
) -> None:
    pass


for command in (
    *(demo, datasets, data, recipes, train),
    *(predict, explain, evaluate, overview, diff, build, words),
    *(suppress, restore, certify, verify, run),
):
    app.command()(command)


def main() -> None:
    """Entry point: bad input gets one sentence and exit code 2, never a traceback."""
    try:
        app()
    except (ValueError, OSError, ImportError) as error:
        message = str(error).strip() or type(error).__name__
        err = Console(stderr=True, soft_wrap=True, emoji=False)
        err.print(f"Error: {' '.join(message.split())}", markup=False, style="red")
        sys.exit(2)
