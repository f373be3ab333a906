"""The global view: which words matter for each class over many texts, how often and how much."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from lexical_sae.attribution.explanation import Explanation
from lexical_sae.model.heads import LinearHead

if TYPE_CHECKING:
    from lexical_sae.model.lexical_sae import LexicalSAE

EXAMPLES = 3


@dataclass(frozen=True)
class WordRole:
    """A word in the decisions for one class.

    `texts`: those in which it contributes. `total`: the sum of its contributions; `mean` is over
    those texts. `share`: its part of all contributions to the class, in absolute value.
    """

    word: str
    texts: int
    total: float
    mean: float
    share: float
    examples: tuple[str, ...]


@dataclass(frozen=True)
class ClassOverview:
    """The words behind the texts that were given one label, largest share first."""

    label: str
    texts: int
    words: tuple[WordRole, ...]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def class_overview(
    explanations: Iterable[Explanation], labels: Sequence[str], top: int = 20
) -> list[ClassOverview]:
    """For each label, over the explanations that are about it (predicted, unless asked else)."""
    if top < 1:
        raise ValueError(f"top is {top}; expected at least 1.")
    tallies = {label: _Tally() for label in labels}
    for explanation in explanations:
        if explanation.against is not None:
            raise ValueError("An overview is about single labels; leave out against.")
        tallies[explanation.label].add(explanation)
    return [tally.overview(label, top) for label, tally in tallies.items()]


@dataclass
class _Tally:
    texts: int = 0
    size: float = 0.0  # Σ|contribution| over all words
    words: dict[str, _WordTally] = field(default_factory=dict)

    def add(self, explanation: Explanation) -> None:
        self.texts += 1
        here: dict[str, float] = {}
        for entry in explanation.vocabulary:
            here[entry.word] = here.get(entry.word, 0.0) + entry.contribution
            self.size += abs(entry.contribution)
        for word, contribution in here.items():
            self.words.setdefault(word, _WordTally()).add(contribution, explanation.text)

    def overview(self, label: str, top: int) -> ClassOverview:
        ranked = sorted(self.words.items(), key=lambda item: (-item[1].size, item[0]))[:top]
        return ClassOverview(
            label,
            self.texts,
            tuple(
                WordRole(
                    word,
                    tally.texts,
                    tally.total,
                    tally.total / tally.texts,
                    tally.size / self.size if self.size else 0.0,
                    tally.best(),
                )
                for word, tally in ranked
            ),
        )


@dataclass
class _WordTally:
    texts: int = 0
    total: float = 0.0
    size: float = 0.0
    examples: list[tuple[float, int, str]] = field(default_factory=list)  # a heap of the largest

    def add(self, contribution: float, text: str) -> None:
        self.texts += 1
        self.total += contribution
        self.size += abs(contribution)
        # earlier texts win ties, so that the same texts give the same view
        entry = (abs(contribution), -self.texts, text)
        if len(self.examples) < EXAMPLES:
            heapq.heappush(self.examples, entry)
        else:
            heapq.heappushpop(self.examples, entry)

    def best(self) -> tuple[str, ...]:
        return tuple(text for _, _, text in sorted(self.examples, reverse=True))


@dataclass(frozen=True)
class Scorecard:
    """logit[label] = Σ activation · points + bias: the whole of a linear head, or of one region."""

    label: str
    bias: float
    points: tuple[tuple[str, float], ...]  # (word, points per unit of activation), largest first

    def to_dict(self) -> dict[str, Any]:
        return {"label": self.label, "bias": self.bias, "points": [list(p) for p in self.points]}


def linear_scorecard(model: LexicalSAE, top: int | None = None) -> list[Scorecard]:
    """Exact for every text; `top` keeps the words with the most points, by size."""
    head = model.head
    if not isinstance(head, LinearHead):
        raise ValueError(
            "Only a linear head has one scorecard for all texts; for an MLP head see the atlas of "
            "its linear regions (attribution.atlas)."
        )
    return [
        Scorecard(
            label,
            float(head.bias[c].detach()),
            ranked_points(model, head.weight[:, c].detach().tolist(), top),
        )
        for c, label in enumerate(model.config.labels)
    ]


def ranked_points(
    model: LexicalSAE, points: Sequence[float], top: int | None
) -> tuple[tuple[str, float], ...]:
    """(word, points) of every coordinate that is not suppressed, largest first."""
    assert model.dictionary is not None
    kept = zip(model.dictionary.words, points, model.lexical.keep.tolist(), strict=True)
    ranked = sorted(
        ((word, value) for word, value, is_kept in kept if is_kept),
        key=lambda pair: (-abs(pair[1]), pair[0]),
    )
    return tuple(ranked[:top])
