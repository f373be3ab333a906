"""Viterbi over the transition mask: legal, and the best of all legal sequences."""

from __future__ import annotations

import itertools

import torch
from hypothesis import given
from hypothesis import strategies as st

from lexical_sae.model.decoding import allowed_transitions, best_legal_tags
from lexical_sae.text.iob import find_violation

LABELS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]


@given(st.integers(1, 5), st.integers(0, 2**31))
def test_it_is_the_best_legal_sequence(length: int, seed: int) -> None:
    logits = torch.randn(length, len(LABELS), generator=torch.Generator().manual_seed(seed))
    found = best_legal_tags(logits, *allowed_transitions(LABELS))
    assert find_violation([LABELS[tag] for tag in found]) is None

    def score(tags: tuple[int, ...]) -> float:
        return float(sum(logits[i, tag].double() for i, tag in enumerate(tags)))

    legal = (
        tags
        for tags in itertools.product(range(len(LABELS)), repeat=length)
        if find_violation([LABELS[tag] for tag in tags]) is None
    )
    assert abs(score(tuple(found)) - max(map(score, legal))) < 1e-9


def test_where_the_best_tags_are_legal_they_are_taken() -> None:
    logits = torch.full((3, 5), -1.0)
    for place, tag in enumerate((1, 2, 0)):
        logits[place, tag] = 3.0
    assert best_legal_tags(logits, *allowed_transitions(LABELS)) == [1, 2, 0]


def test_labels_of_another_kind_are_free() -> None:
    follows, starts = allowed_transitions(["NOUN", "VERB", "I-", "B-X"])
    assert follows.all()
    assert starts.all()
    assert best_legal_tags(torch.zeros(0, 4), follows, starts) == []
