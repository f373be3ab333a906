"""Texts split into words, and cells that hold words."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lexical_sae.text.sentences import read_sentence
from lexical_sae.text.token_lists import written_words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("It's 3,5 or 3.5 - o.k.?", ["It", "'s", "3,5", "or", "3.5", "-", "o.k.", "?"]),
        ("U.S.-based firm (AP)", ["U.S.", "-", "based", "firm", "(", "AP", ")"]),
        (unicodedata.normalize("NFD", "Müller café"), None),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("re-elected on 1996-08-22", ["re-elected", "on", "1996-08-22"]),
    ],
)
def test_words_of_a_text(text: str, words: list[str] | None) -> None:
    assert list(read_sentence(text).words) == (text.split() if words is None else words)


@given(st.text(min_size=1).filter(lambda t: t.strip() and t.isprintable()))
def test_every_word_is_where_it_says_and_nothing_but_spaces_is_left_out(text: str) -> None:
    try:
        sentence = read_sentence(text)
    except ValueError:
        return
    done = 0
    for word, (start, end) in zip(sentence.words, sentence.spans, strict=True):
        assert text[start:end] == word
        assert not text[done:start].strip()
        done = end
    assert not text[done:].strip()


@pytest.mark.parametrize(
    ("cell", "column", "found"),
    [
        (["a", "b"], "tokens", ["a", "b"]),
        ('["a", "b"]', "tokens", ["a", "b"]),
        ("['a', 'b']", "text", ["a", "b"]),
        ("a b", "Tokens", ["a", "b"]),
        ("a b", "text", "a b"),
        ("[1]", "text", "[1]"),
        ("[]", "text", "[]"),
        ("[ 1 ] John", "tokens", ["[", "1", "]", "John"]),
        ("[sic] he said", "text", "[sic] he said"),
    ],
)
def test_cells_of_words(cell: object, column: str, found: object) -> None:
    assert written_words(cell, column) == found
