"""Tagged sentences as HTML: a page of its own, or a piece for a notebook."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from lexical_sae.attribution.tag_explanation import (
    EntityExplanation,
    TagExplanation,
    TokenExplanation,
)
from lexical_sae.report.page import fragment, page, render
from lexical_sae.report.word_rows import signed, word_rows

TITLE = "Why the words are tagged so"
TOP = 10  # open words of an entity with a row of their own
WORDS = 3  # open words that are named for each word of the sentence


def tag_page(explanations: Sequence[TagExplanation], title: str = TITLE) -> str:
    """One file: all sentences below each other."""
    lead = (
        "Each entity is the sum of its rows, exactly: the open words of all of its words, for the "
        "tags that they got."
    )
    return page(title, lead, [_article(explanation) for explanation in explanations])


def tag_fragment(explanation: TagExplanation) -> str:
    """For a notebook, which brings the page around it."""
    return fragment(_article(explanation))


def _article(explanation: TagExplanation) -> str:
    return render(
        "tags.html",
        e=explanation,
        text=list(_pieces(explanation)),
        entities=[_entity(found) for found in explanation.entities],
        tokens=[_token(token) for token in explanation.tokens],
    )


def _pieces(explanation: TagExplanation) -> Iterator[dict[str, Any]]:
    """The text in order, cut at its entities."""
    done = 0
    for found in explanation.entities:
        entity = found.entity
        yield {"text": explanation.text[done : entity.start], "type": ""}
        yield {"text": explanation.text[entity.start : entity.end], "type": entity.type}
        done = entity.end
    yield {"text": explanation.text[done:], "type": ""}


def _token(token: TokenExplanation) -> dict[str, Any]:
    """A word in one row: its tag and the strongest of its open words."""
    strongest = [f"{word.shown} {signed(word.contribution)}" for word in token.vocabulary[:WORDS]]
    more = len(token.vocabulary) - len(strongest)
    if more:
        strongest.append(f"{more} smaller ones")
    return {
        "text": token.text,
        "tag": token.tag,
        "probability": f"{100 * token.probability:.1f} %" if token.read else "",
        "words": ", ".join(strongest) if token.read else "not read: no token stands for it",
        "bias": signed(token.bias) if token.read else "",
        "logit": f"{token.logit:.4f}" if token.read else "",
    }


def _entity(found: EntityExplanation) -> dict[str, Any]:
    rows, rest = word_rows(found.vocabulary, TOP)
    return {
        "text": found.entity.text,
        "type": found.entity.type,
        "score": f"{100 * found.entity.score:.1f} %",
        "rows": rows,
        "rest": rest,
        "bias": signed(found.bias),
        "logit": f"{found.logit:.4f}",
        "residual": f"{found.residual:.0e}",
    }
