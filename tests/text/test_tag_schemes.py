"""IOB1, BILOU and BIOES become IOB2 with the same entities; what is none of them is left alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lexical_sae.text import load_dataset
from lexical_sae.text.iob import Span, find_violation, spans_to_tags, tags_to_spans
from lexical_sae.text.tag_schemes import to_iob2


@st.composite
def sentences(draw: st.DrawFn) -> tuple[int, list[Span]]:
    """Entities in a row, touching or apart."""
    place, spans = 0, []
    for _ in range(draw(st.integers(0, 5))):
        start = place + draw(st.integers(0, 2))
        place = start + draw(st.integers(1, 3))
        spans.append(Span(start, place, draw(st.sampled_from(["PER", "LOC"]))))
    return place + draw(st.integers(0, 2)), spans


def write(length: int, spans: list[Span], scheme: str) -> list[str]:
    tags = ["O"] * length
    before: Span | None = None
    for span in spans:
        size = span.end - span.start
        if scheme == "IOB1":
            touches = before is not None and before.end == span.start and before.type == span.type
            prefixes = ["B" if touches else "I"] + ["I"] * (size - 1)
        else:
            last, single = ("L", "U") if scheme == "BILOU" else ("E", "S")
            prefixes = [single] if size == 1 else ["B", *["I"] * (size - 2), last]
        tags[span.start : span.end] = [f"{prefix}-{span.type}" for prefix in prefixes]
        before = span
    return tags


@pytest.mark.parametrize("scheme", ["IOB1", "BILOU", "BIOES"])
@given(st.lists(sentences(), min_size=1, max_size=4))
def test_the_entities_stay_the_same(scheme: str, rows: list[tuple[int, list[Span]]]) -> None:
    written = [write(length, spans, scheme) for length, spans in rows]
    found, named = to_iob2(written)
    ambiguous = all(find_violation(tags) is None for tags in written)
    assert named == (None if ambiguous else scheme)
    for tags, (_, spans) in zip(found, rows, strict=True):
        assert find_violation(tags) is None
        if not ambiguous:
            assert tags_to_spans(tags) == spans


@given(st.lists(sentences(), max_size=4))
def test_iob2_is_left_as_it_is(rows: list[tuple[int, list[Span]]]) -> None:
    written = [spans_to_tags(length, spans) for length, spans in rows]
    assert to_iob2(written) == (written, None)


@pytest.mark.parametrize(
    "tags",
    [
        ["B-PER", "I-LOC"],  # neither IOB2 nor IOB1: a B that follows nothing
        ["B-PER", "L-LOC"],
        ["L-PER"],
        ["U-PER", "I-PER"],
        ["B-PER", "O", "L-PER"],
        ["X-PER"],
        ["I-"],
        ["PER"],
    ],
)
def test_what_is_no_scheme_is_left_for_the_check(tags: list[str]) -> None:
    found, named = to_iob2([tags])
    assert (found, named) == ([tags], None)
    assert find_violation(found[0]) is not None


@pytest.mark.parametrize(
    ("tags", "scheme"),
    [('["I-PER", "I-PER", "O"]', "IOB1"), ('["B-PER", "L-PER", "U-LOC"]', "BILOU")],
)
def test_a_file_in_another_scheme_is_converted_and_said(
    tmp_path: Path, tags: str, scheme: str
) -> None:
    file = tmp_path / "train.jsonl"
    file.write_text(f'{{"tokens": ["Ada", "Lovelace", "London"], "tags": {tags}}}\n' * 30)
    found = load_dataset(file, split="all")
    assert f"tags converted from {scheme} to IOB2" in found.notes
    assert [found.label_names[tag] for tag in found.tags[0]][:2] == ["B-PER", "I-PER"]
    assert all(name[0] in "BIO" for name in found.label_names)
