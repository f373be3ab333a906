"""Open words as rows of a table: the largest by name with a bar each, the others together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

HALF = 40  # width of a bar in either direction


class Contributing(Protocol):
    """An open word of a text's or of a tag's explanation."""

    @property
    def word(self) -> str: ...

    @property
    def shown(self) -> str: ...

    @property
    def contribution(self) -> float: ...


def word_rows(
    vocabulary: Sequence[Contributing], top: int
) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """A row for each of the first `top` words, and one for all that follow (None if none do)."""
    shown, others = vocabulary[:top], vocabulary[top:]
    widest = max((abs(word.contribution) for word in shown), default=1.0)
    rows = [
        {
            "word": word.shown,
            "score": signed(word.contribution),
            "side": side(word.contribution),
            **_bar(word.contribution / widest),
        }
        for word in shown
    ]
    if not others:
        return rows, None
    return rows, {"count": len(others), "score": signed(total(others))}


def total(words: Sequence[Contributing]) -> float:
    return math.fsum(word.contribution for word in words)


def signed(value: float) -> str:
    """With a sign that reads as one, +0.52 and −0.52."""
    return f"{value:+.3f}".replace("-", "−")


def side(value: float) -> str:
    return "for" if value > 0 else "against"


def _bar(share: float) -> dict[str, str]:
    width = max(1.0, abs(share) * HALF)
    return {"left": f"{HALF if share > 0 else HALF - width:.1f}", "width": f"{width:.1f}"}
