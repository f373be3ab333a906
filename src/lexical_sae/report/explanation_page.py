"""Explanations as HTML: a page of its own, or a piece for a notebook."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from lexical_sae.attribution.explanation import Explanation
from lexical_sae.report.page import fragment, page, render
from lexical_sae.report.terminal import flip_line, sufficient_line, unread_line
from lexical_sae.report.word_rows import side, signed, word_rows

TITLE = "Why the model decided so"
TOP = 20  # open words with a row of their own
LABELS = 10  # probabilities that are shown


def explanation_page(explanations: Sequence[Explanation], title: str = TITLE) -> str:
    """One file: all explanations below each other."""
    lead = (
        "Each decision is the sum of its rows, exactly. Words with a straight underline speak for "
        "the label, words with a wavy one against it; the stronger the shade, the more."
    )
    return page(title, lead, [_article(explanation) for explanation in explanations])


def explanation_fragment(explanation: Explanation) -> str:
    """For a notebook, which brings the page around it."""
    return fragment(_article(explanation))


def _article(explanation: Explanation) -> str:
    rows, rest = word_rows(explanation.vocabulary, TOP)
    for row, word in zip(rows, explanation.vocabulary, strict=False):
        row |= {"source": word.source.text, "activation": f"{word.activation:.3f}"}
    ranked = sorted(explanation.probabilities.items(), key=lambda pair: -pair[1])
    return render(
        "explanation.html",
        e=explanation,
        text=list(_pieces(explanation)),
        rows=rows,
        rest=rest,
        bias=signed(explanation.bias),
        logit=f"{explanation.logit:.4f}",
        residual=f"{explanation.residual:.0e}",
        probabilities=[(name, f"{100 * p:.1f} %") for name, p in ranked[:LABELS]],
        hidden_labels=max(0, len(ranked) - LABELS),
        sufficient=sufficient_line(explanation) if explanation.certified is not None else "",
        flip=flip_line(explanation.flip) if explanation.flip is not None else "",
        unread=unread_line(explanation) if explanation.unread else "",
    )


def _pieces(explanation: Explanation) -> Iterator[dict[str, Any]]:
    """The text in order, cut at the words that contribute."""
    strongest = max((abs(word.score) for word in explanation.words), default=1.0)
    done = 0
    for word in sorted(explanation.words, key=lambda word: word.start):
        start = max(word.start, done)
        if start >= word.end:  # two words over the same characters: the first is marked
            continue
        yield {"text": explanation.text[done:start], "side": ""}
        share = abs(word.score) / strongest
        yield {
            "text": explanation.text[start : word.end],
            "side": side(word.score),
            "strength": 3 if share >= 0.5 else 2 if share >= 0.2 else 1,
            "score": signed(word.score),
        }
        done = word.end
    yield {"text": explanation.text[done:], "side": ""}
