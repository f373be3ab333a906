"""Explanations as HTML: a page of its own, or a piece for a notebook."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from lexical_sae.attribution.explanation import Explanation
from lexical_sae.report.page import page, render, style
from lexical_sae.report.terminal import flip_line, sufficient_line

TITLE = "Why the model decided so"
TOP = 20  # open words with a row of their own
LABELS = 10  # probabilities that are shown
_HALF = 40  # width of a bar in either direction


def explanation_page(explanations: Sequence[Explanation], title: str = TITLE) -> str:
    """One file: all explanations below each other."""
    if not explanations:
        raise ValueError("There are no explanations to show; expected at least one.")
    lead = (
        "Each decision is the sum of its rows, exactly. Words with a straight underline speak for "
        "the label, words with a wavy one against it; the stronger the shade, the more."
    )
    return page(title, lead, "\n".join(_article(explanation) for explanation in explanations))


def explanation_fragment(explanation: Explanation) -> str:
    """For a notebook, which brings the page around it: the style holds inside of it only."""
    return in_notebook(_article(explanation))


def in_notebook(article: str) -> str:
    inside = style().replace(":root {", "& {").replace("body {", "& {")
    return f'<div class="lexical-sae"><style>.lexical-sae {{\n{inside}}}</style>{article}</div>'


def _article(explanation: Explanation) -> str:
    shown, others = explanation.vocabulary[:TOP], explanation.vocabulary[TOP:]
    widest = max((abs(word.contribution) for word in shown), default=1.0)
    ranked = sorted(explanation.probabilities.items(), key=lambda pair: -pair[1])
    return render(
        "explanation.html",
        e=explanation,
        text=list(_pieces(explanation)),
        rows=[
            {
                "word": word.word,
                "score": signed(word.contribution),
                "side": side(word.contribution),
                "source": word.source.text,
                "activation": f"{word.activation:.3f}",
                **bar(word.contribution / widest),
            }
            for word in shown
        ],
        rest=(
            {"count": len(others), "score": signed(math.fsum(w.contribution for w in others))}
            if others
            else None
        ),
        bias=signed(explanation.bias),
        logit=f"{explanation.logit:.4f}",
        residual=f"{explanation.residual:.0e}",
        probabilities=[(name, f"{100 * p:.1f} %") for name, p in ranked[:LABELS]],
        hidden_labels=max(0, len(ranked) - LABELS),
        sufficient=sufficient_line(explanation) if explanation.certified is not None else "",
        flip=flip_line(explanation.flip) if explanation.flip is not None else "",
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


def signed(value: float) -> str:
    """With a sign that reads as one, +0.52 and −0.52."""
    return f"{value:+.3f}".replace("-", "−")


def side(value: float) -> str:
    return "for" if value > 0 else "against"


def bar(share: float) -> dict[str, str]:
    width = max(1.0, abs(share) * _HALF)
    return {"left": f"{_HALF if share > 0 else _HALF - width:.1f}", "width": f"{width:.1f}"}
