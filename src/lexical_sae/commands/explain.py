"""``lexical-sae explain``: why a text gets its label, in colour, as JSON or as a page."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lexical_sae.commands.console import TopkPerPosition, Windows, out, plain

if TYPE_CHECKING:
    from lexical_sae.attribution.explanation import Explanation
    from lexical_sae.attribution.tag_explanation import TagExplanation

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
    topk_per_position: TopkPerPosition = None,
    windows: Windows = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the page.")] = False,
) -> None:
    """Show which words made the decision; they add up to the logit exactly.

    Of a tagger: which words made each entity; --json and --html also have every other word.
    """
    from lexical_sae.runs import load_run

    if json and html is not None:
        raise ValueError("Give --json or --html, not both.")
    if not time_limit > 0:
        raise ValueError(f"--time-limit is {time_limit}; expected seconds above 0.")
    _check_page(html, overwrite)
    if bool(texts) == (input is not None):
        raise ValueError("Give texts or --input FILE (one of the two), e.g. explain RUN 'A text.'")
    model = load_run(run, topk_per_position, windows)
    tagging = model.config.task == "tagging"
    given = list(texts or ()) if input is None else read_texts(input, text_column, words=tagging)
    if tagging:
        asked = {"--label": label, "--against": against, "--certify": certify, "--flip": flip}
        asked["--method"] = method != "contributions"
        for name in (name for name, value in asked.items() if value):
            raise ValueError(f"{name} is for classifiers; this model tags words.")

    def explained(part: list[Any]) -> Sequence[Explanation | TagExplanation]:
        if tagging:
            from lexical_sae.attribution.tags import explain_tags

            return explain_tags(model, part)
        from lexical_sae.certify.proofs import explain_with_proofs

        return explain_with_proofs(
            model,
            part,
            label,
            against,
            certify=certify,
            flip=flip,
            optimal=flip,
            time_limit=time_limit,
            method=method,
        )

    made: list[Any] = []
    for start in range(0, len(given), WINDOW):
        found = explained(given[start : start + WINDOW])
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
        _write_page(made, html, tagging)
        what = "1 explanation" if len(made) == 1 else f"{len(made):,} explanations"
        plain(f"{what} written to {html}")


def read_texts(input: Path, column: str | None, *, words: bool = False) -> list[Any]:
    """Every text of a file (with `words` also lists of words); a bad row is refused by number."""
    from lexical_sae.text.rows import BadRow
    from lexical_sae.text.stream import check_input, open_rows
    from lexical_sae.text.token_lists import written_words

    check_input(input)
    stream = open_rows(input, column, words=words)
    found = []
    for row in stream:
        if isinstance(row, BadRow):
            raise ValueError(f"{input}, {row}; correct the row or leave it out.")
        value = row.values[stream.text_column]
        found.append(written_words(value, stream.text_column) if words else value)
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


def _write_page(found: list[Any], html: Path, tagging: bool) -> None:
    from lexical_sae.report.explanation_page import explanation_page
    from lexical_sae.report.tag_page import tag_page
    from lexical_sae.text.write_rows import replacing

    with replacing(html) as scratch:
        written = tag_page(found) if tagging else explanation_page(found)
        scratch.write_text(written, encoding="utf-8")
