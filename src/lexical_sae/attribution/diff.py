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

    `moved` is the share of the reasons that changed: Σ|change| over Σ|before| + Σ|after|, from 0
    (the same reasons) to 1 (no word in common).
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
class ModelDiff:
    """All texts, and over them the words whose contributions changed most."""

    texts: tuple[TextDiff, ...]
    words: tuple[WordChange, ...]  # mean contribution per text, largest change first
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
        words=_over_texts(diffs),
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
    size = math.fsum(abs(c.before) + abs(c.after) for c in changes)
    return TextDiff(
        text=before.text,
        label=before.label,
        predicted_before=before.predicted,
        predicted_after=after.predicted,
        logit_change=after.logit - before.logit,
        bias_change=after.bias - before.bias,
        words=tuple(sorted((c for c in changes if c.change), key=lambda c: -abs(c.change))),
        moved=math.fsum(abs(c.change) for c in changes) / size if size else 0.0,
    )


def _by_word(explanation: Explanation) -> dict[str, float]:
    """A cased vocabulary may show two coordinates as one word; they are added."""
    found: dict[str, float] = {}
    for entry in explanation.vocabulary:
        found[entry.word] = found.get(entry.word, 0.0) + entry.contribution
    return found


def _over_texts(diffs: Sequence[TextDiff]) -> tuple[WordChange, ...]:
    """Mean |contribution| per text before and after: signs of different labels do not cancel."""
    before: dict[str, float] = {}
    after: dict[str, float] = {}
    for diff in diffs:
        for word in diff.words:
            before[word.word] = before.get(word.word, 0.0) + abs(word.before) / len(diffs)
            after[word.word] = after.get(word.word, 0.0) + abs(word.after) / len(diffs)
    changes = [WordChange(word, before[word], after[word]) for word in sorted(before)]
    return tuple(sorted(changes, key=lambda c: -abs(c.change)))
