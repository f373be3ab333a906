"""Explanations with their proofs: the words that suffice, and those whose removal flips."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lexical_sae.attribution.explain import BATCH, ExplainedBatch, explained_batches
from lexical_sae.attribution.explanation import Explanation, Flip
from lexical_sae.certify.flip import TIME_LIMIT, flip_set
from lexical_sae.certify.row_problem import RowProblem, row_problem
from lexical_sae.certify.sufficient import sufficient_reason

if TYPE_CHECKING:
    from lexical_sae.model.lexical_sae import LexicalSAE


def explain_with_proofs(
    model: LexicalSAE,
    texts: Sequence[str],
    label: str | None = None,
    against: str | None = None,
    *,
    certify: bool = False,
    flip: bool = False,
    optimal: bool = False,
    time_limit: float = TIME_LIMIT,
    method: str = "contributions",
    batch_size: int = BATCH,
) -> list[Explanation]:
    """`explain_many`, with the sufficient reason and the flip set of each decision if asked for.

    Proofs are about the predicted label, whichever label is explained.
    """
    found: dict[int, Explanation] = {}
    for batch in explained_batches(
        model, texts, label, against, method=method, batch_size=batch_size
    ):
        for row, index in enumerate(batch.index):
            found[index] = _with_proofs(
                model, batch, row, certify=certify, flip=flip, optimal=optimal, limit=time_limit
            )
    return [found[index] for index in range(len(texts))]


def _with_proofs(
    model: LexicalSAE,
    batch: ExplainedBatch,
    row: int,
    *,
    certify: bool,
    flip: bool,
    optimal: bool,
    limit: float,
) -> Explanation:
    explanation = batch.explanations[row]
    if not (certify or flip):
        return explanation
    problem = row_problem(batch.state, row)
    if certify:
        words = _sufficient(model, problem)
        explanation = replace(explanation, certified=words is not None, sufficient=words)
    if flip:
        explanation = replace(explanation, flip=_flip(model, problem, optimal, limit))
    return explanation


def _sufficient(model: LexicalSAE, problem: RowProblem) -> tuple[str, ...] | None:
    reason = sufficient_reason(problem)
    return None if reason is None else _words(model, reason.coordinates)


def _flip(model: LexicalSAE, problem: RowProblem, optimal: bool, limit: float) -> Flip:
    found = flip_set(problem, optimal=optimal, time_limit=limit)
    return Flip(
        words=None if found.coordinates is None else _words(model, found.coordinates),
        becomes=None if found.becomes is None else model.config.labels[found.becomes],
        optimal=found.optimal,
        impossible=found.impossible,
        at_least=found.at_least,
    )


def _words(model: LexicalSAE, coordinates: Sequence[int]) -> tuple[str, ...]:
    assert model.dictionary is not None
    return tuple(model.dictionary.words[v] for v in coordinates)
