"""A tagged sentence in the terminal: its entities coloured, and the words behind each."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from lexical_sae.attribution.tag_explanation import EntityExplanation, TagExplanation
from lexical_sae.report.terminal import visible, words_table

COLOURS = ("cyan", "magenta", "yellow", "blue", "green", "red")


def show_tags(explanation: TagExplanation, top: int = 4) -> Group:
    """The sentence, then each entity with its strongest open words and the exact sum."""
    kinds = sorted({found.entity.type for found in explanation.entities})
    colour = {kind: COLOURS[i % len(COLOURS)] for i, kind in enumerate(kinds)}
    text = Text(visible(explanation.text))
    for found in explanation.entities:
        entity = found.entity
        text.stylize(f"bold {colour[entity.type]} underline", entity.start, entity.end)
    parts: list[RenderableType] = [text]
    for found in explanation.entities:
        parts += _entity(found, colour[found.entity.type], top)
    if not explanation.entities:
        parts.append(Text("no entities", style="dim"))
    return Group(*parts)


def _entity(found: EntityExplanation, colour: str, top: int) -> list[RenderableType]:
    entity = found.entity
    heading = Text.assemble(
        (visible(entity.text), f"bold {colour}"), f"  {entity.type}  {100 * entity.score:.0f} %"
    )
    words = entity.words[1] - entity.words[0]
    what = "the logit of its tag" if words == 1 else f"the logits of its {words} tags together"
    end = Text(f"  = {found.logit:.4f}, {what} (off by {found.residual:.0e})")
    return [heading, words_table(found.vocabulary, found.bias, top, indent="  "), end]
