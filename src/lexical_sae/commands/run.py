"""``lexical-sae run``: a study from one file."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lexical_sae.commands.console import out, plain

if TYPE_CHECKING:
    from lexical_sae.studies.registry import Study
    from lexical_sae.studies.strict import StudyConfig


def run(
    file: Annotated[Path | None, typer.Argument(help="YAML file with a study.")] = None,
    output: Annotated[
        Path | None,
        typer.Option(help="Folder of the result; default runs/ and the name of the file."),
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="KEY=VALUE laid over the file.")
    ] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Runs of every arm.")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="The small form that the file describes.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show all runs and what they take, and do nothing.")
    ] = False,
    list_: Annotated[
        bool, typer.Option("--list", help="Kinds of study, and the files in ./experiments.")
    ] = False,
) -> None:
    """Run a study and leave results.json, report.html, tables and figures. What is trained is
    kept, so the same command goes on where it was stopped."""
    if list_:
        _list()
        return
    if file is None:
        raise ValueError("No file was given; expected a YAML file with a study, or --list.")
    from lexical_sae.studies.files import default_folder, fallback_of, load_study

    instead = fallback_of(file)
    config = load_study(file, set_ or [], quick=quick, seeds=seeds)
    folder = output if output is not None else default_folder(file, quick=quick)
    from lexical_sae.studies.fallback import check_fallback
    from lexical_sae.studies.planned_data import check_datasets
    from lexical_sae.studies.registry import STUDIES
    from lexical_sae.studies.study_record import check_folder, kind_kept
    from lexical_sae.text.errors import SourceUnavailableError

    study = STUDIES[config.study]
    check_folder(folder, config.study)
    try:
        if dry_run:
            _plan(study, config, folder, instead)
            return
        check_datasets(study, config)
        with kind_kept(folder, config.study):
            found = study.run(config, folder, out)
    except SourceUnavailableError as missing:
        if instead is None:
            raise
        given = set_ or []
        check_fallback(missing, instead, given, quick=quick, seeds=seeds, output=output)
        plain(f"{missing} Instead, {instead} {'would be' if dry_run else 'is'} run.")
        run(instead, output, set_, seeds, quick, dry_run)  # in its own folder, if none is given
        return
    names = ("results.json", "report.html", "tables.md", "tables.tex")
    written = [str(folder / name) for name in (*names, "figures") if (folder / name).exists()]
    plain(f"written: {', '.join(written)}")
    if found.get("failed"):
        raise typer.Exit(1)


def _list() -> None:
    from lexical_sae.studies.files import FOLDER, study_files
    from lexical_sae.studies.registry import STUDIES

    width = max(map(len, STUDIES))
    for kind, study in STUDIES.items():
        plain(f"{kind:{width}}  {study.about}")
    files = study_files()
    plain("")
    plain(f"in {FOLDER}/:" if files else f"no study in {FOLDER}/ of this folder")
    longest = max((len(str(file)) for file in files), default=0)
    for file, kind in files.items():
        plain(f"{file!s:{longest}}  {kind}")


def _plan(study: Study, config: StudyConfig, folder: Path, instead: Path | None) -> None:
    from lexical_sae.studies.plan import plan_study
    from lexical_sae.studies.planned_data import check_datasets
    from lexical_sae.text.errors import SourceUnavailableError

    with contextlib.suppress(SourceUnavailableError):  # told by the plan, beside all the rest
        check_datasets(study, config)
    plan = plan_study(study, config, folder)
    for line in plan.lines:
        plain(line)
    if instead is not None and plan.missing is not None:
        raise plan.missing
    if instead is not None and not plan.all_here:
        plain(f"where the data cannot be had, {instead} is run instead")
    if plan.code:
        raise typer.Exit(plan.code)
