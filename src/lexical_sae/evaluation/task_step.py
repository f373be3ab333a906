"""How often the model is right: labels of texts, or entities of sentences."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from lexical_sae.evaluation.bootstrap import mean_estimate, ratio_estimate
from lexical_sae.evaluation.subject import Subject
from lexical_sae.evaluation.tag_reading import TagReading
from lexical_sae.report.finding import Cell, Finding, FindingTable
from lexical_sae.text.entity_scores import entity_scores, strict_spans
from lexical_sae.text.iob import Span

SHOWN_CLASSES = 30


def measure_task(subject: Subject) -> Finding:
    reading = subject.reading
    if isinstance(reading, TagReading):
        return _entities(subject, reading)
    counts = reading.state.open_words.counts().double().numpy()
    right = (reading.state.predicted == reading.labels).double().numpy()
    return Finding(
        metrics={
            "accuracy": mean_estimate(right, subject.seed),
            "open_words": mean_estimate(counts, subject.seed),
        },
        tables=(_classes(subject, right),),
        notes=(f"{reading.rows:,} texts of the {subject.test.split} split",),
    )


def _classes(subject: Subject, right: NDArray[np.float64]) -> FindingTable:
    """How often the texts of each class are right, and how often the class is given at all."""
    reading = subject.reading
    rows: list[tuple[Cell, ...]] = []
    labels, given = reading.labels.numpy(), reading.state.predicted.numpy()
    for index, name in enumerate(subject.model.config.labels):
        share = mean_estimate(right[labels == index], subject.seed)
        ends = (None if x is None else 100 * x for x in (share.value, share.low, share.high))
        rows.append((name, int((labels == index).sum()), *ends, int((given == index).sum())))
    title = "Texts of each class"
    if len(rows) > SHOWN_CLASSES:
        title = "Texts of the classes that are right least often"
        rows = [row for row in rows if row[1]]
        rows = sorted(rows, key=lambda row: float(row[2] or 0.0))[:SHOWN_CLASSES]
    columns = ("class", "texts", "right, %", "from", "to", "texts given it")
    return FindingTable(title, columns, tuple(rows))


def _entities(subject: Subject, reading: TagReading) -> Finding:
    """Strict: an entity counts if its span and its type are right."""
    names = subject.model.config.labels
    gold = [[names[tag] for tag in tags] for tags in subject.test.tags]
    given = [[names[tag] for tag in tags] for tags in reading.tags]
    scores = entity_scores(gold, given)
    spans = [(set(strict_spans(a)), set(strict_spans(b))) for a, b in zip(gold, given, strict=True)]
    correct = np.array([float(len(wanted & found)) for wanted, found in spans])
    wanted, found = (np.array([float(len(pair[i])) for pair in spans]) for i in (0, 1))
    right = np.array(
        [
            float(sum(a == b for a, b in zip(x, y, strict=True)))
            for x, y in zip(gold, given, strict=True)
        ]
    )
    words = np.array([float(len(tags)) for tags in gold])
    read = torch.bincount(reading.sentence, minlength=len(gold)).double().numpy()
    counts = reading.state.open_words.counts().double()
    opened = torch.zeros(len(gold), dtype=torch.float64).index_add(0, reading.sentence, counts)
    rows: list[tuple[Cell, ...]] = [
        (kind, score.support, 100 * score.precision, 100 * score.recall, 100 * score.f1)
        for kind, score in scores.types.items()
    ]
    columns = ("type", "entities", "precision, %", "recall, %", "F1, %")
    return Finding(
        metrics={
            # over resampled sentences: what is in one sentence stands and falls together
            "entity_f1": ratio_estimate(2 * correct, wanted + found, subject.seed),
            "entity_precision": ratio_estimate(correct, found, subject.seed),
            "entity_recall": ratio_estimate(correct, wanted, subject.seed),
            "token_accuracy": ratio_estimate(right, words, subject.seed),
            "open_words": ratio_estimate(opened.numpy(), read, subject.seed),
        },
        tables=(FindingTable("Entities of each type", columns, tuple(rows)),),
        worst=_worst(subject.test.tokens, spans),
        notes=(
            f"{len(gold):,} sentences of the {subject.test.split} split, {reading.rows:,} words; "
            "tags that are not legal together are never given",
        ),
    )


def _worst(
    sentences: Sequence[Sequence[str]], spans: Sequence[tuple[set[Span], set[Span]]]
) -> tuple[dict[str, Cell], ...]:
    """The sentences with the most entities that are missed or made up."""
    order = sorted(range(len(spans)), key=lambda i: -len(spans[i][0] ^ spans[i][1]))
    return tuple(
        {
            "text": " ".join(sentences[i]),
            "missed": _shown(sentences[i], spans[i][0] - spans[i][1]),
            "made up": _shown(sentences[i], spans[i][1] - spans[i][0]),
        }
        for i in order[:5]
        if spans[i][0] != spans[i][1]
    )


def _shown(sentence: Sequence[str], spans: set[Span]) -> str:
    return ", ".join(
        f"{' '.join(sentence[span.start : span.end])} ({span.type})" for span in sorted(spans)
    )
