"""Entity scores: those of seqeval's strict mode, also for tags that are no legal IOB2."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lexical_sae.text.entity_scores import entity_scores, strict_spans
from lexical_sae.text.iob import Span

TAGS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
pairs = st.lists(
    st.lists(st.tuples(st.sampled_from(TAGS), st.sampled_from(TAGS)), min_size=1, max_size=8),
    min_size=1,
    max_size=5,
)


@given(pairs)
def test_seqeval_agrees(sentences: list[list[tuple[str, str]]]) -> None:
    metrics = pytest.importorskip("seqeval.metrics")
    from seqeval.scheme import IOB2

    gold = [[wanted for wanted, _ in sentence] for sentence in sentences]
    predicted = [[given for _, given in sentence] for sentence in sentences]
    found = entity_scores(gold, predicted)
    options = {"mode": "strict", "scheme": IOB2, "zero_division": 0}
    assert found.micro.f1 == pytest.approx(metrics.f1_score(gold, predicted, **options))
    assert found.micro.precision == pytest.approx(
        metrics.precision_score(gold, predicted, **options)
    )
    assert found.micro.recall == pytest.approx(metrics.recall_score(gold, predicted, **options))
    assert found.token_accuracy == pytest.approx(metrics.accuracy_score(gold, predicted))


def test_a_case_counted_by_hand_as_conlleval_counts_it() -> None:
    """Legal tags, where strict IOB2 and conlleval are the same: 5 gold, 5 found, 2 right."""
    gold = [
        ["B-PER", "I-PER", "O", "B-LOC"],
        ["B-LOC", "O", "B-PER", "B-PER", "O"],
    ]
    predicted = [
        ["B-PER", "I-PER", "O", "B-PER"],
        ["B-LOC", "O", "B-PER", "I-PER", "B-LOC"],
    ]
    found = entity_scores(gold, predicted)
    # right: PER(0,2), LOC(0,1). Wrong: PER(3,4) for LOC, PER(2,4) for two, LOC(4,5)
    assert (found.micro.predicted, found.micro.support) == (5, 5)
    assert found.micro.precision == pytest.approx(2 / 5)
    assert found.micro.recall == pytest.approx(2 / 5)
    assert found.types["LOC"].precision == pytest.approx(1 / 2)
    assert found.types["PER"].recall == pytest.approx(1 / 3)
    assert found.token_accuracy == pytest.approx(6 / 9)


def test_spans_of_illegal_tags() -> None:
    assert strict_spans(["I-PER", "B-PER", "I-LOC", "I-PER"]) == [Span(1, 2, "PER")]
    assert strict_spans([]) == []


def test_no_entities_at_all() -> None:
    found = entity_scores([["O", "O"]], [["O", "O"]])
    assert found.micro.f1 == 0
    assert found.token_accuracy == 1


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="1 gold and 2 predicted sentences"):
        entity_scores([["O"]], [["O"], ["O"]])
    with pytest.raises(ValueError, match="Sentence 1 has 2 gold and 1 predicted tags"):
        entity_scores([["O", "O"]], [["O"]])
