"""``lexical-sae run``: a study from one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lexical_sae.commands.console import out, plain


def run(
    file: Annotated[Path, typer.Argument(help="YAML file with a study.")],
    output: Annotated[
        Path | None, typer.Option(help="Folder of the result; default runs/NAME OF THE FILE.")
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="KEY=VALUE laid over the file.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="The small form that the file describes.")
    ] = False,
) -> None:
    """Run a study and leave results.json, report.html and tables. What is trained is kept."""
    from lexical_sae.studies.files import load_study
    from lexical_sae.studies.long_context import run_long_context
    from lexical_sae.studies.long_context_config import LongContextConfig
    from lexical_sae.studies.surgery import run_surgery
    from lexical_sae.studies.surgery_config import SurgeryConfig
    from lexical_sae.studies.wic import run_wic
    from lexical_sae.studies.wic_config import WicConfig

    config = load_study(file, set_ or [], quick=quick)
    folder = output if output is not None else Path("runs") / f"{file.stem}{'-quick' * quick}"
    if isinstance(config, LongContextConfig):
        run_long_context(config, folder, out)
    elif isinstance(config, WicConfig):
        run_wic(config, folder, out)
    else:
        assert isinstance(config, SurgeryConfig)
        run_surgery(config, folder, out)
    plain(f"written: {folder / 'results.json'}, {folder / 'report.html'}, {folder / 'tables.md'}")
