"""Scores of words beside the marks of people, where the dataset has them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from lexical_sae.evaluation.bootstrap import mean_estimate
from lexical_sae.evaluation.explainers import OURS, own_words
from lexical_sae.evaluation.input_game import MaskedText, masked_text, word_scores
from lexical_sae.evaluation.input_peers import attention_scores
from lexical_sae.evaluation.peers import random_scores
from lexical_sae.evaluation.perturbation import Floats
from lexical_sae.evaluation.plausibility import COLUMNS, Agreement, agreement, token_scores
from lexical_sae.evaluation.subject import NotPossible, Subject
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
        if marks is None or not len(marks) or len(marks) != len(tokens):
            continue
        spans = token_spans(text, list(tokens))
        if spans is not None:
            yield text, spans, np.asarray(marks, dtype=np.float64) > 0


def measure_plausibility(subject: Subject) -> Finding:
    """Area under precision and recall and F1 of our words, attention and chance; of the twin's
    attention too, if it is given."""
    found: dict[str, list[Agreement]] = {}

    def judge(
        name: str,
        text: MaskedText,
        scores: Floats,
        spans: list[tuple[int, int]],
        marked: NDArray[np.bool_],
    ) -> None:
        read = max((word.end for word in text.words), default=0)
        seen = [i for i, (_, end) in enumerate(spans) if end <= read]  # what the model reads
        if not seen:
            return
        words = [
            (word.start, word.end, float(score))
            for word, score in zip(text.words, scores, strict=True)
        ]
        one = agreement(marked[seen], token_scores([spans[i] for i in seen], words))
        if one is not None:
            found.setdefault(name, []).append(one)

    for count, (text, spans, marked) in enumerate(marked_texts(subject)):
        if count >= TEXTS:
            break
        own = masked_text(subject.model, text)
        judge(OURS, own, own_words(own), spans, marked)
        judge("random", own, random_scores(own.n, subject.seed + count), spans, marked)
        models = {"attention": own}
        if subject.twin is not None:
            models["attention of the dense twin"] = masked_text(subject.twin, text)
        for name, game in models.items():
            judge(name, game, word_scores(game.words, attention_scores(game)), spans, marked)
        subject.advance(1)
    if not found:
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
    )
