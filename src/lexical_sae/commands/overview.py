"""``lexical-sae overview``: the words behind each class over a whole file."""

from __future__ import annotations

import json as json_module
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lexical_sae.commands.console import plain
from lexical_sae.commands.explain import read_texts

if TYPE_CHECKING:
    from lexical_sae.attribution.atlas import Atlas, Mask
    from lexical_sae.attribution.explanation import Explanation
    from lexical_sae.attribution.overview import ClassOverview, Scorecard


def overview(
    run: Annotated[Path, typer.Argument(help="Folder of a run or of a saved model.")],
    input: Annotated[Path, typer.Option(help="CSV, TSV, JSON Lines or parquet file of texts.")],
    text_column: Annotated[str | None, typer.Option(help="Column of the text.")] = None,
    top: Annotated[int, typer.Option(min=1, help="Words per class.")] = 10,
    json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Show per class the words that matter most, how often and how much, and the head's regions."""
    from lexical_sae.attribution.atlas import atlas_of_masks, region_masks
    from lexical_sae.attribution.explain import explained_batches
    from lexical_sae.attribution.overview import class_overview, linear_scorecard
    from lexical_sae.model.heads import LinearHead, MLPHead
    from lexical_sae.runs import load_run

    texts = read_texts(input, text_column)
    model = load_run(run)
    linear, regions = isinstance(model.head, LinearHead), isinstance(model.head, MLPHead)
    masks: Counter[Mask] = Counter()

    def explanations() -> Iterator[Explanation]:
        for batch in explained_batches(model, texts):
            if regions:
                masks.update(region_masks(batch.state))
            yield from batch.explanations

    classes = class_overview(explanations(), model.config.labels, top)
    cards = linear_scorecard(model, top) if linear else []
    atlas = atlas_of_masks(model, masks, top=top) if regions else None
    if json:
        found: dict[str, Any] = {"classes": [view.to_dict() for view in classes]}
        found |= {"scorecards": [card.to_dict() for card in cards]} if linear else {}
        found |= {"atlas": atlas.to_dict()} if atlas is not None else {}
        print(json_module.dumps(found, ensure_ascii=False))
        return
    for view in classes:
        _show_class(view)
    if atlas is not None:
        _show_atlas(atlas)
    for card in cards:
        plain(f"scorecard of {card.label}, bias {card.bias:+.2f}: {_points(card)}")


def _show_class(view: ClassOverview) -> None:
    plain(f"{view.label}: {view.texts:,} texts")
    for role in view.words:
        example = role.examples[0] if role.examples else ""
        short = example if len(example) <= 60 else example[:59] + "…"
        plain(
            f"  {100 * role.share:5.1f} %  {role.mean:+.2f} in {role.texts:,} texts  "
            f"{role.word}   e.g. {short}"
        )
    plain("")


def _show_atlas(atlas: Atlas) -> None:
    covered = sum(region.coverage for region in atlas.regions)
    plain(
        f"linear regions: {atlas.masks:,} masks of hidden units in {atlas.texts:,} texts; the "
        f"{len(atlas.regions)} most common cover {100 * covered:.1f} %"
    )
    for region in atlas.regions:
        plain(f"  {region.texts:,} texts ({100 * region.coverage:.1f} %), exact points there:")
        for card in region.scorecards[:2]:
            plain(f"    {card.label}: {_points(card)}")


def _points(card: Scorecard) -> str:
    return ", ".join(f"{word} {points:+.2f}" for word, points in card.points[:8])
