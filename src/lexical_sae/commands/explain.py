"""``lexical-sae explain``: why a text gets its label, in colour, as JSON or as a page."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lexical_sae.commands.console import out, plain

if TYPE_CHECKING:
    from lexical_sae.attribution.explanation import Explanation

WINDOW = 256
"""Texts that are explained before the first of them is shown."""


def explain(
    run: Annotated[Path, typer.Argument(help="Folder of a run or of a saved model.")],
    texts: Annotated[list[str] | None, typer.Argument(help="Texts to explain.")] = None,
    input: Annotated[
        Path | None, typer.Option(help="CSV, TSV, JSON Lines or parquet file of texts.")
    ] = None,
    text_column: Annotated[str | None, typer.Option(help="Column of the text.")] = None,
    label: Annotated[str | None, typer.Option(help="Label; default the predicted one.")] = None,
    against: Annotated[str | None, typer.Option(help="Why rather this label?")] = None,
    json: Annotated[bool, typer.Option("--json", help="One line of JSON per text.")] = False,
    html: Annotated[Path | None, typer.Option(help="Write a page to this file.")] = None,
    certify: Annotated[
        bool, typer.Option("--certify", help="Words that decide whatever the others do.")
    ] = False,
    flip: Annotated[
        bool, typer.Option("--flip", help="Fewest words whose removal changes the decision.")
    ] = False,
    time_limit: Annotated[float, typer.Option(help="Seconds per text to prove a flip.")] = 10.0,
    method: Annotated[
        str, typer.Option(help="contributions or integrated_gradients.")
    ] = "contributions",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the page.")] = False,
) -> None:
    """Show which words made the decision; they add up to the logit exactly."""
    from lexical_sae.certify.proofs import explain_with_proofs
    from lexical_sae.runs import load_run

    if json and html is not None:
        raise ValueError("Give --json or --html, not both.")
    if not time_limit > 0:
        raise ValueError(f"--time-limit is {time_limit}; expected seconds above 0.")
    _check_page(html, overwrite)
    given = _texts(texts, input, text_column)
    model = load_run(run)
    made: list[Explanation] = []
    for start in range(0, len(given), WINDOW):
        found = explain_with_proofs(
            model,
            given[start : start + WINDOW],
            label,
            against,
            certify=certify,
            flip=flip,
            optimal=flip,
            time_limit=time_limit,
            method=method,
        )
        if json:
            sys.stdout.writelines(explanation.to_json() + "\n" for explanation in found)
        elif html is not None:
            made += found
        else:
            for number, explanation in enumerate(found, start):
                if number:
                    plain("")
                out.print(explanation)
    if html is not None:
        _write_page(made, html)
        what = "1 explanation" if len(made) == 1 else f"{len(made):,} explanations"
        plain(f"{what} written to {html}")


def _texts(texts: list[str] | None, input: Path | None, column: str | None) -> list[str]:
    if bool(texts) == (input is not None):
        raise ValueError("Give texts or --input FILE (one of the two), e.g. explain RUN 'A text.'")
    return list(texts or ()) if input is None else read_texts(input, column)


def read_texts(input: Path, column: str | None) -> list[str]:
    """Every text of a file; a bad row is refused by its number."""
    from lexical_sae.text.rows import BadRow
    from lexical_sae.text.stream import check_input, open_rows

    check_input(input)
    stream = open_rows(input, column)
    found = []
    for row in stream:
        if isinstance(row, BadRow):
            raise ValueError(f"{input}, {row}; correct the row or leave it out.")
        found.append(row.values[stream.text_column])
    if not found:
        raise ValueError(f"{input} has no rows; expected at least one text.")
    return found


def _check_page(html: Path | None, overwrite: bool) -> None:
    if html is None:
        return
    if html.is_dir() or (html.exists() and not overwrite):
        advice = "" if html.is_dir() else ", or pass --overwrite"
        raise ValueError(f"{html} exists; choose another file{advice}.")
    if not html.parent.is_dir():
        raise ValueError(f"{html.parent} is not a folder; create it or choose another file.")


def _write_page(found: list[Explanation], html: Path) -> None:
    from lexical_sae.report.explanation_page import explanation_page
    from lexical_sae.text.write_rows import replacing

    with replacing(html) as scratch:
        scratch.write_text(explanation_page(found), encoding="utf-8")
