"""Entities of a tagged sentence, as stretches of its text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from lexical_sae.text.iob import tags_to_spans
from lexical_sae.text.sentences import Sentence


@dataclass(frozen=True)
class Entity:
    """A stretch of the text and its type; `score` is the mean probability of its tags."""

    text: str
    start: int
    end: int
    type: str
    score: float
    words: tuple[int, int]  # first word, and the one after the last

    def to_dict(self) -> dict[str, Any]:
        return {
            "text": self.text,
            "start": self.start,
            "end": self.end,
            "type": self.type,
            "score": self.score,
        }


def entities_of(
    sentence: Sentence, tags: Sequence[str], probabilities: Sequence[float]
) -> tuple[Entity, ...]:
    """In the order of the text; `tags` must be legal IOB2, `probabilities` are theirs."""
    found = []
    for first, after, kind in tags_to_spans(tags):
        start, end = sentence.spans[first][0], sentence.spans[after - 1][1]
        score = fmean(probabilities[first:after])
        found.append(Entity(sentence.text[start:end], start, end, kind, score, (first, after)))
    return tuple(found)
