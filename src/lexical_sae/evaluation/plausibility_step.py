"""Scores of words beside the marks of people, where the dataset has them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from lexical_sae.evaluation.bootstrap import mean_estimate
from lexical_sae.evaluation.compared import Scorer
from lexical_sae.evaluation.explainers import (
    OURS,
    input_explainers,
    input_texts,
    missing_note,
    own_words,
)
from lexical_sae.evaluation.input_game import MaskedText, masked_text, word_scores
from lexical_sae.evaluation.input_peers import attention_scores
from lexical_sae.evaluation.peers import random_scores
from lexical_sae.evaluation.perturbation import Floats
from lexical_sae.evaluation.plausibility import COLUMNS, Agreement, agreement, token_scores
from lexical_sae.evaluation.reading import NotPossible, spread
from lexical_sae.evaluation.subject import Subject
from lexical_sae.report.finding import Cell, Finding, FindingTable

TEXTS = 200


def token_spans(text: str, tokens: Sequence[str]) -> list[tuple[int, int]] | None:
    """The characters of each token in the text, in their order; None if one is not found."""
    found, at = [], 0
    for token in tokens:
        start = text.find(token, at)
        if start < 0:
            return None
        at = start + len(token)
        found.append((start, at))
    return found


def marked_texts(
    subject: Subject,
) -> Iterator[tuple[str, list[tuple[int, int]], NDArray[np.bool_]]]:
    """Texts with marks: the characters of their tokens and which of them people marked."""
    extra = subject.test.extra
    column = next((name for name in COLUMNS if name in extra), None)
    if column is None or "tokens" not in extra:
        raise NotPossible(
            f"{subject.test.name} has no human rationales (columns tokens and "
            f"{' or '.join(COLUMNS)}); eraser_movies and hatexplain do."
        )
    for text, tokens, marks in zip(subject.test.texts, extra["tokens"], extra[column], strict=True):
        if marks is None or len(marks) != len(tokens) or len(set(map(bool, marks))) < 2:
            continue  # all or nothing marked says nothing about which words
        spans = token_spans(text, list(tokens))
        if spans is not None:
            yield text, spans, np.asarray(marks, dtype=np.float64) > 0


def measure_plausibility(subject: Subject) -> Finding:
    """Area under precision and recall and F1 of our words, of chance, and of other explainers of
    this model and, if it is given, of the dense twin; LIME, SHAP and captum on fewer texts."""
    found: dict[str, list[Agreement]] = {}
    texts = list(marked_texts(subject))
    texts = [texts[i] for i in spread(len(texts), TEXTS)]
    slow = set(spread(len(texts), input_texts(subject)))
    for count, (text, spans, marked) in enumerate(texts):
        own = masked_text(subject.model, text)
        if own.n < 2:
            continue
        scorers: dict[str, Scorer] = {
            OURS: partial(own_words, own),
            "random": partial(random_scores, own.n, subject.seed + count),
        }
        if count in slow and len(slow) < len(texts):
            scorers[f"{OURS}, on the texts of the slow"] = scorers[OURS]
        scorers |= _explainers(own, "", count in slow, subject.seed)
        games = dict.fromkeys(scorers, own)
        if subject.twin is not None:
            other = masked_text(subject.twin, text)
            of_twin = _explainers(other, " of the dense twin", count in slow, subject.seed)
            games |= dict.fromkeys(of_twin, other)
            scorers |= of_twin
        for name, scorer in scorers.items():
            one = _judged(games[name], scorer(), spans, marked)
            if one is not None:
                found.setdefault(name, []).append(one)
        subject.advance(1)
    if OURS not in found:
        raise NotPossible("No text has marks on some and not all of its words.")
    rows: list[tuple[Cell, ...]] = []
    for name, each in found.items():
        area = mean_estimate([one.auprc for one in each], subject.seed)
        f1 = mean_estimate([one.f1 for one in each], subject.seed)
        rows.append((name, len(each), area.value, area.low, area.high, f1.value, f1.low, f1.high))
    columns = ("scores of", "texts", "AUPRC", "from", "to", "F1", "from", "to")
    return Finding(
        metrics={"plausibility_auprc": mean_estimate([one.auprc for one in found[OURS]])},
        tables=(FindingTable("Words that people marked", columns, tuple(rows)),),
        notes=missing_note(),
    )


def _explainers(text: MaskedText, whose: str, slow: bool, seed: int) -> dict[str, Scorer]:
    scorers: dict[str, Scorer] = {
        "attention": lambda: word_scores(text.words, attention_scores(text))
    }
    if slow:
        scorers |= input_explainers(text, seed)
    return {name + whose: scorer for name, scorer in scorers.items()}


def _judged(
    text: MaskedText, scores: Floats, spans: list[tuple[int, int]], marked: NDArray[np.bool_]
) -> Agreement | None:
    """Scores of a text's words beside the marks on the part that the model reads."""
    read = max((word.end for word in text.words), default=0)
    seen = [i for i, (_, end) in enumerate(spans) if end <= read]
    if not seen:
        return None
    words = [
        (word.start, word.end, float(score)) for word, score in zip(text.words, scores, strict=True)
    ]
    return agreement(marked[seen], token_scores([spans[i] for i in seen], words))
