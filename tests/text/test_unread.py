"""Words that are taken out of a text: what is left, where it stood, and that nothing else goes."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lexical_sae.text.unread import checked_words, without_unread

LIST = ("muslim", "african american")


@pytest.mark.parametrize(
    ("text", "left", "gone"),
    [
        ("the muslim man", "the man", ["muslim"]),
        ("Muslim man", "man", ["Muslim"]),
        ("a  MUSLIM", "a", ["MUSLIM"]),
        ("(muslim)", "()", ["muslim"]),
        ("nice muslim, too", "nice , too", ["muslim"]),
        ("the muslim's view", "the 's view", ["muslim"]),
        ("a muslim-friendly place", "a -friendly place", ["muslim"]),
        ("african-american and African  American men", "and men", None),
        ("african muslim american men", "men", ["african muslim american"]),
        ("muslim muslim man", "man", ["muslim", "muslim"]),
        ("so muslim", "so", ["muslim"]),
        ("muslim", "", ["muslim"]),
        ("_muslim_ #muslim", "__ #", ["muslim", "muslim"]),
        # as a tokenizer that drops accents and invisible characters would see it
        ("müslim, mus\u200blim and mu\u0308slim\u0308 x", ", and x", None),
        # at an invisible character a tokenizer drops it or parts words; it splits at ideographs
        ("a mus\x0clim b", "a b", None),
        ("mus\ufffdlim x", "x", None),
        ("the\u200bmuslim x", "the x", None),
        ("他是muslim的", "他是的", ["muslim"]),
        ("\U0001d40cuslim x", "x", None),
        # other words
        ("muslims muslim2 submuslim amuslim", "muslims muslim2 submuslim amuslim", []),
        ("", "", []),
    ],
)
def test_what_is_left(text: str, left: str, gone: list[str] | None) -> None:
    found = without_unread(text, LIST)
    assert found.text == left
    if gone is not None:
        assert [text[a:b] for a, b in found.gone] == gone


def test_a_token_on_both_sides_of_what_is_gone_has_one_side() -> None:
    text = "see (muslim), ok"
    found = without_unread(text, LIST)
    assert found.text == "see (), ok"
    assert found.in_whole(4, 6) == (4, 5)  # "()" is one token to some
    assert found.in_whole(5, 7) == (11, 13)
    assert found.in_whole(0, 0) == (0, 0)
    assert found.in_whole(5, 5) == (5, 5)


@pytest.mark.parametrize(
    "words", ["muslim", None, {"a": 1}, ["a", 1], ["a", ""], ["\u200b"], ["-"]]
)
def test_what_is_no_list_of_words_is_refused(words: object) -> None:
    with pytest.raises(ValueError, match=r"unread .*; expected .*words"):
        checked_words(words)


def test_a_part_of_a_character_is_no_word() -> None:
    assert without_unread("x ½ y 1", ["1"]).text == "x ½ y"


def test_without_words_a_text_stays_as_it_is() -> None:
    assert without_unread("  a ", ()).text == "  a "


TEXT = st.text(st.sampled_from("abcABC é\u0308\u200b½-_,.'\n\t12"), max_size=40)
WORDS = st.lists(st.sampled_from(["a", "b", "ab", "a b", "c1", "é", "½", "b c"]), max_size=4)


@given(TEXT, WORDS)
def test_what_is_left_stands_where_it_is_said_to_stand(text: str, words: list[str]) -> None:
    found = without_unread(text, words)
    if found.places is not None:
        assert "".join(text[i] for i in found.places) == found.text
        assert list(found.places) == sorted(set(found.places))
    for start in range(len(found.text)):
        a, b = found.in_whole(start, start + 1)
        assert text[a:b] == found.text[start]
    # nothing but the words, spaces and what cannot be seen is gone
    kept = set(range(len(text))) if found.places is None else set(found.places)
    inside = {i for a, b in found.gone for i in range(a, b)}
    assert all(
        text[i].isspace() or text[i] in "\u0308\u200b"
        for i in set(range(len(text))) - kept - inside
    )
    assert all(text[i].isspace() or text[i] in "\u0308\u200b" for i in inside & kept)
    assert without_unread(found.text, words).text == found.text


@given(st.text(st.sampled_from("ab ,"), max_size=30), st.sampled_from(["ab", "b"]))
def test_no_word_is_left(text: str, word: str) -> None:
    """The slow, obvious reference."""
    left = without_unread(text, [word]).text
    assert word not in re.findall(r"[a-z]+", left)
    others = [w for w in re.findall(r"[a-z]+|,", text) if w != word]
    assert re.findall(r"[a-z]+|,", left) == others


def test_long_texts_take_linear_time() -> None:
    start = time.perf_counter()
    without_unread("a" + " " * 300_000 + "b", LIST)
    without_unread("the muslim man " * 20_000, [*LIST, *(f"word{i}" for i in range(100))])
    without_unread("african " * 5_000 + "american " * 5_000, LIST)
    assert time.perf_counter() - start < 10
