"""One explanation in the terminal: the text with its words coloured, and the open words beneath."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from typing import TypeVar

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from lexical_sae.attribution.explanation import Explanation, Flip
from lexical_sae.attribution.words import SpanScore
from lexical_sae.report.word_rows import Contributing, total

FOR, AGAINST = "green", "red"
AWord = TypeVar("AWord", bound=Contributing)


def coloured(text: str, words: Sequence[SpanScore]) -> Text:
    """The text: words that speak for the label in green, against it in red and underlined, strong
    ones bold."""
    shown = Text(visible(text))
    strongest = max((abs(word.score) for word in words), default=0.0)
    for word in words:
        share = abs(word.score) / strongest if strongest else 0.0
        if share >= 0.05:
            style = FOR if word.score > 0 else f"{AGAINST} underline"
            shown.stylize(f"bold {style}" if share >= 0.4 else style, word.start, word.end)
    return shown


def show_explanation(explanation: Explanation, top: int = 6) -> Group:
    """Label, probability, the coloured text, the strongest open words and the exact sum."""
    parts: list[RenderableType] = [
        _heading(explanation),
        coloured(explanation.text, explanation.words),
        words_table(
            explanation.vocabulary,
            explanation.bias,
            top,
            note=lambda word: f"opened by “{visible(word.source.text)}”",
        ),
    ]
    what = "the logit" if explanation.against is None else "the difference of the logits"
    parts.append(Text(f"= {explanation.logit:.4f}, {what} (off by {explanation.residual:.0e})"))
    if explanation.certified is not None:
        parts.append(Text(sufficient_line(explanation)))
    if explanation.flip is not None:
        parts.append(Text(flip_line(explanation.flip)))
    if explanation.unread:
        parts.append(Text(unread_line(explanation), "dim"))
    if explanation.truncated:
        parts.append(Text("the text is longer than the model reads; its end was not seen", "dim"))
    return Group(*parts)


def _heading(explanation: Explanation) -> Text:
    label, probability = explanation.label, explanation.probabilities[explanation.label]
    heading = Text.assemble((label, "bold"), f"  {100 * probability:.0f} %")
    if explanation.against is not None:
        heading.append(f"  against {explanation.against}")
    if explanation.predicted != label:
        heading.append(f"  (predicted: {explanation.predicted})", style="dim")
    return heading


def words_table(
    vocabulary: Sequence[AWord],
    bias: float,
    top: int,
    *,
    note: Callable[[AWord], str] | None = None,
    indent: str = "",
) -> Table:
    """The strongest open words, the others together, and the bias."""
    table = Table(box=None, pad_edge=False, show_header=False)

    def add(value: float, name: Text, style: str = "", said: str = "") -> None:
        cells = [Text(f"{indent}{value:+.2f}", style=style), name]
        table.add_row(*cells, *([Text(said, style="dim")] if note else []))

    for word in vocabulary[:top]:
        style = FOR if word.contribution > 0 else AGAINST
        add(word.contribution, Text(word.shown), style, note(word) if note else "")
    others = vocabulary[top:]
    if others:
        name = "1 other word" if len(others) == 1 else f"{len(others)} other words"
        add(total(others), Text(name, style="dim"))
    add(bias, Text("bias", style="dim"))
    return table


def visible(text: str) -> str:
    """Control characters as one visible character each: a text must not steer the terminal, and
    the places of its words stay where they are."""
    return "".join(
        "\ufffd" if unicodedata.category(c) == "Cc" and c not in "\n\t" else c for c in text
    )


def unread_line(explanation: Explanation) -> str:
    """The words of the text that the model leaves unread."""
    words = dict.fromkeys(visible(place.text) for place in explanation.unread)
    return f"not read: {', '.join(words)}"


def sufficient_line(explanation: Explanation) -> str:
    if not explanation.certified:
        return "not proved: the decision is within what single precision can round"
    words = explanation.sufficient or ()
    if not words:
        return f"proved: {explanation.predicted}, whatever the open words do"
    return (
        f"proved: {', '.join(words)} alone {'decides' if len(words) == 1 else 'decide'} "
        f"{explanation.predicted}, whatever the other open words do"
    )


def flip_line(flip: Flip) -> str:
    if flip.words is None:
        if flip.impossible:
            return "proved: no removal of open words changes the decision"
        needed = "1 word" if flip.at_least == 1 else f"{flip.at_least} words"
        return (
            "no removal that changes the decision was found (not proved that there is none; one "
            f"would take at least {needed})"
        )
    proof = "proved minimal" if flip.optimal else f"not proved minimal, at least {flip.at_least}"
    return f"without {', '.join(flip.words)} it would be {flip.becomes} ({proof})"
