"""Model diff: what changed in the reasons between two models, word by word, exactly.

For one text and one label, Δlogit = Σ over words of Δcontribution + Δbias: a word that is open in
one model only counts with 0 in the other. Words are compared by how they are written, so the two
dictionaries may differ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from lexical_sae.attribution.explain import explain_many
from lexical_sae.attribution.explanation import Explanation

if TYPE_CHECKING:
    from lexical_sae.model.lexical_sae import LexicalSAE


@dataclass(frozen=True)
class WordChange:
    """A word's contribution in the first model and in the second."""

    word: str
    before: float
    after: float

    @property
    def change(self) -> float:
        return self.after - self.before

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "change": self.change}


@dataclass(frozen=True)
class TextDiff:
    """One text: Σ change + bias change = logit change, for the label of the first model.

    `moved` is the share of the reasons that changed: Σ|change| over Σ|before| + Σ|after|, the bias
    among them, from 0 (the same reasons) to 1 (none in common).
    """

    text: str
    label: str
    predicted_before: str
    predicted_after: str
    logit_change: float
    bias_change: float
    words: tuple[WordChange, ...]  # largest change first
    moved: float

    @property
    def residual(self) -> float:
        parts = [word.change for word in self.words]
        return abs(math.fsum((*parts, self.bias_change, -self.logit_change)))

    def to_dict(self) -> dict[str, Any]:
        return {
            "text": self.text,
            "label": self.label,
            "predicted": {"before": self.predicted_before, "after": self.predicted_after},
            "logit_change": self.logit_change,
            "bias_change": self.bias_change,
            "residual": self.residual,
            "moved": self.moved,
            "words": [word.to_dict() for word in self.words],
        }


@dataclass(frozen=True)
class WordShift:
    """A word over all texts: its mean contribution to their labels in both models, and the mean
    size of its change, which opposite changes do not cancel."""

    word: str
    before: float
    after: float
    moved: float

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class ModelDiff:
    """All texts, and over them the words whose contributions changed most."""

    texts: tuple[TextDiff, ...]
    words: tuple[WordShift, ...]
    flipped: int
    mean_moved: float

    def to_dict(self) -> dict[str, Any]:
        return {
            "texts": len(self.texts),
            "flipped": self.flipped,
            "mean_moved": self.mean_moved,
            "largest_residual": max((text.residual for text in self.texts), default=0.0),
            "words": [word.to_dict() for word in self.words],
        }


def diff_models(before: LexicalSAE, after: LexicalSAE, texts: Sequence[str]) -> ModelDiff:
    """How the reasons for each text's label, that of `before`, change between the models."""
    if set(before.config.labels) != set(after.config.labels):
        raise ValueError(
            f"The models have different labels ({', '.join(before.config.labels)} and "
            f"{', '.join(after.config.labels)}); expected the same ones."
        )
    first = explain_many(before, texts)
    # the same batches for both, so that equal models give equal numbers to the last bit
    second = explain_many(after, texts, [explanation.label for explanation in first])
    diffs = tuple(diff_explanations(one, two) for one, two in zip(first, second, strict=True))
    return ModelDiff(
        texts=diffs,
        words=_over_texts(first, second),
        flipped=sum(diff.predicted_before != diff.predicted_after for diff in diffs),
        mean_moved=math.fsum(diff.moved for diff in diffs) / max(1, len(diffs)),
    )


def diff_explanations(before: Explanation, after: Explanation) -> TextDiff:
    """Two explanations of the same text and label."""
    if (before.text, before.label, before.against) != (after.text, after.label, after.against):
        raise ValueError("The explanations are of different texts or labels; expected the same.")
    first, second = _by_word(before), _by_word(after)
    changes = [
        WordChange(word, first.get(word, 0.0), second.get(word, 0.0))
        for word in sorted({*first, *second})
    ]
    bias = WordChange("", before.bias, after.bias)
    size = math.fsum(abs(c.before) + abs(c.after) for c in (*changes, bias))
    return TextDiff(
        text=before.text,
        label=before.label,
        predicted_before=before.predicted,
        predicted_after=after.predicted,
        logit_change=after.logit - before.logit,
        bias_change=after.bias - before.bias,
        words=tuple(sorted((c for c in changes if c.change), key=lambda c: -abs(c.change))),
        moved=math.fsum(abs(c.change) for c in (*changes, bias)) / size if size else 0.0,
    )


def _by_word(explanation: Explanation) -> dict[str, float]:
    """A cased vocabulary may show two coordinates as one word; they are added."""
    found: dict[str, float] = {}
    for entry in explanation.vocabulary:
        found[entry.word] = found.get(entry.word, 0.0) + entry.contribution
    return found


def _over_texts(
    first: Sequence[Explanation], second: Sequence[Explanation]
) -> tuple[WordShift, ...]:
    """Means over all texts, largest mean change first."""
    before: dict[str, float] = {}
    after: dict[str, float] = {}
    moved: dict[str, float] = {}
    for one, two in zip(first, second, strict=True):
        old, new = _by_word(one), _by_word(two)
        for word in {*old, *new}:
            was, now = old.get(word, 0.0) / len(first), new.get(word, 0.0) / len(first)
            before[word] = before.get(word, 0.0) + was
            after[word] = after.get(word, 0.0) + now
            moved[word] = moved.get(word, 0.0) + abs(now - was)
    shifts = [WordShift(word, before[word], after[word], moved[word]) for word in sorted(moved)]
    return tuple(sorted((s for s in shifts if s.moved), key=lambda s: -s.moved))
