"""IOB2: every legal sequence passes, every illegal one is found where it breaks."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lexical_sae.text.iob import Span, find_violation, spans_to_tags, tag_inventory, tags_to_spans


@st.composite
def sentences(draw: st.DrawFn) -> tuple[int, list[Span]]:
    """A length and spans within it that do not overlap (they may touch)."""
    length = draw(st.integers(1, 30))
    cuts = sorted(draw(st.sets(st.integers(0, length), max_size=10)))
    kinds = st.sampled_from(["PER", "LOC", "B-ORG", "a b"])
    spans = [Span(start, end, draw(kinds)) for start, end in pairwise(cuts) if draw(st.booleans())]
    return length, spans


@given(sentences())
def test_spans_round_trip(sentence: tuple[int, list[Span]]) -> None:
    length, spans = sentence
    tags = spans_to_tags(length, spans)
    assert len(tags) == length
    assert find_violation(tags) is None
    assert tags_to_spans(tags) == spans


@given(sentences(), st.data())
def test_a_lost_beginning_is_found(sentence: tuple[int, list[Span]], data: st.DataObject) -> None:
    length, spans = sentence
    starts = [s for s in spans if not any(o.end == s.start and o.type == s.type for o in spans)]
    if not starts:
        return
    span = data.draw(st.sampled_from(starts))
    tags = spans_to_tags(length, spans)
    tags[span.start] = f"I-{span.type}"
    violation = find_violation(tags)
    assert violation is not None
    assert violation.token == span.start


@pytest.mark.parametrize(
    ("tags", "token"),
    [
        (["O", "I-PER"], 1),
        (["I-PER"], 0),
        (["B-PER", "I-LOC"], 1),
        (["O", "S-PER"], 1),
        (["B-"], 0),
        (["PER"], 0),
        (["", "O"], 0),
    ],
)
def test_illegal_tags(tags: list[str], token: int) -> None:
    violation = find_violation(tags)
    assert violation is not None
    assert violation.token == token
    assert repr(tags[token]) in violation.reason


def test_inventory_lists_both_forms_of_each_type() -> None:
    assert tag_inventory(["O", "B-PER", "B-LOC", "I-LOC"]) == (
        *("O", "B-LOC", "I-LOC", "B-PER", "I-PER"),
    )
