"""Explanation: why a text got its label, as sums that add up. Plain data, frozen."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lexical_sae.attribution.words import SpanScore
from lexical_sae.model.sense_notes import SenseName, shown_name

FORMAT = 1


@dataclass(frozen=True)
class Place:
    """A stretch of the input text."""

    text: str
    start: int
    end: int

    def to_dict(self) -> dict[str, Any]:
        return {"text": self.text, "start": self.start, "end": self.end}


@dataclass(frozen=True)
class VocabularyWord:
    """An open word of the dictionary, what it contributes, and the input word that opened it."""

    word: str
    contribution: float
    activation: float
    source: Place
    coordinate: int
    sense: SenseName | None = None  # of a word that has several

    @property
    def shown(self) -> str:
        return shown_name(self.word, self.sense)

    def to_dict(self) -> dict[str, Any]:
        found = {
            "word": self.word,
            "contribution": self.contribution,
            "activation": self.activation,
            "from": self.source.to_dict(),
            "coordinate": self.coordinate,
        }
        return found if self.sense is None else {**found, "sense": self.sense.to_dict()}


@dataclass(frozen=True)
class Flip:
    """Words whose removal changes the decision to `becomes`; None if no set was found.

    `optimal`: proved that fewer do not. `impossible`: proved that no removal does.
    """

    words: tuple[str, ...] | None
    becomes: str | None
    optimal: bool
    impossible: bool
    at_least: int

    def to_dict(self) -> dict[str, Any]:
        return {
            "words": list(self.words or ()),
            "optimal": self.optimal,
            "becomes": self.becomes,
            "impossible": self.impossible,
            "at_least": self.at_least,
        }


@dataclass(frozen=True)
class Explanation:
    """Σ vocabulary + bias = Σ words + bias = Σ spans + bias = logit, up to `residual`.

    About `label`, or about `label` against `against`: then `logit`, `bias` and contributions are
    differences. Largest first in `vocabulary`; `words` and `spans` in the order of the text. Only
    what contributes is listed.
    """

    text: str
    label: str
    against: str | None
    predicted: str
    probabilities: Mapping[str, float]
    logit: float
    bias: float
    vocabulary: tuple[VocabularyWord, ...]
    words: tuple[SpanScore, ...]
    spans: tuple[SpanScore, ...]
    truncated: bool
    method: str
    model_hash: str
    dictionary_hash: str
    certified: bool | None = None
    """Whether a sufficient reason was proved; None if that was not asked for."""
    sufficient: tuple[str, ...] | None = None
    """Words that decide the label whatever the others do."""
    flip: Flip | None = None
    unread: tuple[Place, ...] = ()
    """Words of the text that the model does not read."""

    @property
    def residual(self) -> float:
        """How far the vocabulary's contributions and the bias are from the logit, in absolute."""
        parts = [word.contribution for word in self.vocabulary]
        return abs(math.fsum((*parts, self.bias, -self.logit)))

    def to_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "format": FORMAT,
            "text": self.text,
            "label": self.label,
            "against": self.against,
            "predicted": self.predicted,
            "probabilities": dict(self.probabilities),
            "logit": self.logit,
            "bias": self.bias,
            "residual": self.residual,
            "words": [_scored(word) for word in self.words],
            "spans": [_scored(span) for span in self.spans],
            "vocabulary": [word.to_dict() for word in self.vocabulary],
            "truncated": self.truncated,
            "method": self.method,
            "model": self.model_hash,
            "dictionary": self.dictionary_hash,
        }
        if self.certified is not None:
            found["sufficient"] = None if self.sufficient is None else list(self.sufficient)
        if self.flip is not None:
            found["flip"] = self.flip.to_dict()
        if self.unread:
            found["unread"] = [place.to_dict() for place in self.unread]
        return found

    def to_json(self, indent: int | None = None) -> str:
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)

    # The display lives in report/, below; it is reached for only when something is shown.

    def to_html(self) -> str:
        """A whole page: one file, no network."""
        from lexical_sae.report.explanation_page import explanation_page

        return explanation_page([self])

    def _repr_html_(self) -> str:
        from lexical_sae.report.explanation_page import explanation_fragment

        return explanation_fragment(self)

    def __rich__(self) -> Any:
        from lexical_sae.report.terminal import show_explanation

        return show_explanation(self)


def _scored(span: SpanScore) -> dict[str, Any]:
    return {"text": span.text, "start": span.start, "end": span.end, "contribution": span.score}
