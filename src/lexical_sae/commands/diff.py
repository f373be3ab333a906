"""``lexical-sae diff``: what changed in the reasons from one run to another."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lexical_sae.commands.console import plain
from lexical_sae.commands.explain import read_texts

if TYPE_CHECKING:
    from lexical_sae.attribution.diff import ModelDiff


def diff(
    run_a: Annotated[Path, typer.Argument(help="Run or model before.")],
    run_b: Annotated[Path, typer.Argument(help="Run or model after.")],
    input: Annotated[Path, typer.Option(help="CSV, TSV, JSON Lines or parquet file of texts.")],
    text_column: Annotated[str | None, typer.Option(help="Column of the text.")] = None,
    fail_over: Annotated[
        float | None,
        typer.Option(help="Exit with 1 if more than this share of the reasons moved (0 to 1)."),
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="Words and texts to show.")] = 10,
    json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Compare the reasons of two models over the same texts, word by word, exactly."""
    from lexical_sae.attribution.diff import diff_models
    from lexical_sae.runs import load_run

    if fail_over is not None and not 0 <= fail_over <= 1:
        raise ValueError(f"--fail-over is {fail_over}; expected a share from 0 to 1.")
    texts = read_texts(input, text_column)
    found = diff_models(load_run(run_a), load_run(run_b), texts)
    if json:
        every = {**found.to_dict(), "each": [text.to_dict() for text in found.texts]}
        print(json_module.dumps(every, ensure_ascii=False))
    else:
        _report(found, top)
    if fail_over is not None and found.mean_moved > fail_over:
        if not json:
            plain(f"failed: {found.mean_moved:.3f} is over {fail_over:g}")
        raise typer.Exit(1)


def _report(found: ModelDiff, top: int) -> None:
    residual = max(text.residual for text in found.texts)
    plain(
        f"{len(found.texts):,} texts, {found.flipped:,} with another label; "
        f"{100 * found.mean_moved:.1f} % of the reasons moved (sums off by {residual:.0e} at most)"
    )
    plain("")
    plain("words, mean contribution to the label before and after, and how far it moved:")
    for word in found.words[:top]:
        plain(f"  {word.before:+.4f} → {word.after:+.4f}  {word.moved:.4f}  {word.word}")
    plain("")
    plain("texts whose reasons moved most:")
    for text in sorted(found.texts, key=lambda text: -text.moved)[: min(top, 3)]:
        verdict = text.predicted_before
        if text.predicted_after != text.predicted_before:
            verdict += f" → {text.predicted_after}"
        plain(f"  {text.text}")
        plain(f"  {verdict}, logit {text.logit_change:+.3f}, {100 * text.moved:.1f} % moved")
        for change in text.words[:5]:
            plain(f"    {change.before:+.3f} → {change.after:+.3f}  {change.word}")
