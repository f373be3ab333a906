"""Why each word of a sentence got its tag, and each entity its type. Plain data, frozen."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from lexical_sae.model.sense_notes import SenseName, shown_name
from lexical_sae.text.entities import Entity

FORMAT = 1


@dataclass(frozen=True)
class TagWord:
    """An open word of the dictionary and what it contributes."""

    word: str
    contribution: float
    coordinate: int
    activation: float | None = None  # None for an entity, whose tokens each have their own
    sense: SenseName | None = None  # of a word that has several

    @property
    def shown(self) -> str:
        return shown_name(self.word, self.sense)

    def to_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "word": self.word,
            "contribution": self.contribution,
            "coordinate": self.coordinate,
        }
        if self.sense is not None:
            found["sense"] = self.sense.to_dict()
        return found if self.activation is None else {**found, "activation": self.activation}


@dataclass(frozen=True)
class _Sum:
    """Σ vocabulary + bias = logit, up to `residual`."""

    logit: float
    bias: float
    vocabulary: tuple[TagWord, ...]  # largest first, only what contributes

    @property
    def residual(self) -> float:
        parts = [word.contribution for word in self.vocabulary]
        return abs(math.fsum((*parts, self.bias, -self.logit)))

    def _sum_dict(self) -> dict[str, Any]:
        return {
            "logit": self.logit,
            "bias": self.bias,
            "residual": self.residual,
            "vocabulary": [word.to_dict() for word in self.vocabulary],
        }


@dataclass(frozen=True)
class TokenExplanation(_Sum):
    """One word of the sentence: its tag and the sum behind the tag's logit.

    A word that yields no token for the model (a lone zero-width space) is not `read`: it is tagged
    O, and nothing stands behind it.
    """

    text: str
    start: int
    end: int
    tag: str
    probability: float
    read: bool = True

    def to_dict(self) -> dict[str, Any]:
        place = {"text": self.text, "start": self.start, "end": self.end}
        decided = {"tag": self.tag, "probability": self.probability, "read": self.read}
        return {**place, **decided, **self._sum_dict()}


@dataclass(frozen=True)
class EntityExplanation(_Sum):
    """An entity and the sum over its words: contributions, bias and logit are those of all of its
    tags together."""

    entity: Entity

    def to_dict(self) -> dict[str, Any]:
        return {**self.entity.to_dict(), **self._sum_dict()}


@dataclass(frozen=True)
class TagExplanation:
    """A sentence: every word with its tag's exact sum, every entity with the sum of its words."""

    text: str
    tokens: tuple[TokenExplanation, ...]
    entities: tuple[EntityExplanation, ...]
    model_hash: str
    dictionary_hash: str

    @property
    def tags(self) -> tuple[str, ...]:
        return tuple(token.tag for token in self.tokens)

    def to_dict(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "text": self.text,
            "tokens": [token.to_dict() for token in self.tokens],
            "entities": [entity.to_dict() for entity in self.entities],
            "model": self.model_hash,
            "dictionary": self.dictionary_hash,
        }

    def to_json(self, indent: int | None = None) -> str:
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)

    # The display lives in report/, below; it is reached for only when something is shown.

    def to_html(self) -> str:
        """A whole page: one file, no network."""
        from lexical_sae.report.tag_page import tag_page

        return tag_page([self])

    def _repr_html_(self) -> str:
        from lexical_sae.report.tag_page import tag_fragment

        return tag_fragment(self)

    def __rich__(self) -> Any:
        from lexical_sae.report.tag_terminal import show_tags

        return show_tags(self)
