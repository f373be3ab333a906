"""Entity precision, recall and F1, strict: an entity counts if its span and its type are right.

Tags are read as IOB2 and nothing else, as seqeval does in its strict mode: an entity starts with
``B-TYPE`` and goes on with ``I-TYPE`` of the same type; an ``I-TYPE`` that continues nothing is no
entity.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lexical_sae.text.iob import Span


@dataclass(frozen=True)
class Score:
    """Of one type, or of all."""

    precision: float
    recall: float
    f1: float
    support: int  # entities in the gold tags
    predicted: int

    @classmethod
    def of(cls, correct: int, predicted: int, support: int) -> Score:
        precision = correct / predicted if predicted else 0.0
        recall = correct / support if support else 0.0
        both = precision + recall
        return cls(
            precision, recall, 2 * precision * recall / both if both else 0.0, support, predicted
        )


@dataclass(frozen=True)
class EntityScores:
    """Micro averages over all entities, each type's own, and the share of right tags."""

    micro: Score
    types: Mapping[str, Score]
    token_accuracy: float
    tokens: int

    def to_dict(self) -> dict[str, Any]:
        return {
            **asdict(self.micro),
            "types": {name: asdict(score) for name, score in self.types.items()},
            "token_accuracy": self.token_accuracy,
            "tokens": self.tokens,
        }


def strict_spans(tags: Sequence[str]) -> list[Span]:
    """The entities of any tags, legal IOB2 or not."""
    spans: list[Span] = []
    open_type = ""  # type of the entity that the next token may continue
    for index, tag in enumerate(tags):
        prefix, _, kind = tag.partition("-")
        if prefix == "B":
            spans.append(Span(index, index + 1, kind))
            open_type = kind
        elif prefix == "I" and open_type and kind == open_type:
            spans[-1] = spans[-1]._replace(end=index + 1)
        else:
            open_type = ""
    return spans


def entity_scores(
    gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]
) -> EntityScores:
    """Scores over sentences of tags."""
    if len(gold) != len(predicted):
        raise ValueError(
            f"There are {len(gold)} gold and {len(predicted)} predicted sentences; expected as "
            "many of both."
        )
    correct: Counter[str] = Counter()
    found: Counter[str] = Counter()
    support: Counter[str] = Counter()
    right = tokens = 0
    for row, (wanted, given) in enumerate(zip(gold, predicted, strict=True)):
        if len(wanted) != len(given):
            raise ValueError(
                f"Sentence {row + 1} has {len(wanted)} gold and {len(given)} predicted tags; "
                "expected one per token in both."
            )
        wanted_spans, given_spans = set(strict_spans(wanted)), set(strict_spans(given))
        support.update(span.type for span in wanted_spans)
        found.update(span.type for span in given_spans)
        correct.update(span.type for span in wanted_spans & given_spans)
        right += sum(a == b for a, b in zip(wanted, given, strict=True))
        tokens += len(wanted)
    names = sorted({*support, *found})
    return EntityScores(
        micro=Score.of(correct.total(), found.total(), support.total()),
        types={name: Score.of(correct[name], found[name], support[name]) for name in names},
        token_accuracy=right / tokens if tokens else 0.0,
        tokens=tokens,
    )
