"""Words and tokens: every word has its place once, in every family, however long the sentence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lexical_sae.text.alignment import _cuts, join_words, sentence_windows, special_frame
from tests.tiny import TEXTS, tiny_tokenizer

KINDS = ["wordpiece", "bpe", "unigram"]
words = st.sampled_from(
    [w for text in TEXTS[:40] for w in text.split()]
    + ["unseen", "Ünïcode", "😀", "'s", "\u200b", "[MASK]", "films", "U.S."]
)


@pytest.mark.parametrize("kind", KINDS)
@given(sentences=st.lists(st.lists(words, min_size=1, max_size=30), max_size=3), room=st.data())
def test_every_word_is_in_one_window_at_its_own_characters(
    kind: str, sentences: list[list[str]], room: st.DataObject
) -> None:
    tokenizer = tiny_tokenizer(kind)
    limit = room.draw(st.integers(4, 40))
    windows = sentence_windows(tokenizer, sentences, limit)
    for index, sentence in enumerate(sentences):
        joined = join_words(sentence)
        mine = [window for window in windows if window.sentence == index]
        listed = [word for window in mine for word in window.words]
        assert len(listed) == len(set(listed))
        with_tokens = {word for window in mine for word in window.word_of if word >= 0}
        assert set(listed) == with_tokens
        assert all(
            sentence[w].strip("\u200b") == "" for w in set(range(len(sentence))) - set(listed)
        )
        for window in mine:
            assert len(window.input_ids) <= limit
            assert len(window.input_ids) == len(window.offsets) == len(window.word_of)
            for word, place in zip(window.words, window.first, strict=True):
                assert window.word_of[place] == word
                left, right = window.offsets[place]
                start, end = joined.spans[word]
                assert max(left, start) < min(right, end)
                assert joined.text[start:end] == sentence[word]


@pytest.mark.parametrize("kind", KINDS)
def test_a_short_sentence_is_read_as_the_text_it_is(kind: str) -> None:
    tokenizer = tiny_tokenizer(kind)
    (window,) = sentence_windows(tokenizer, [TEXTS[0].split()], 64)
    assert list(window.input_ids) == tokenizer(TEXTS[0])["input_ids"]
    before, after = special_frame(tokenizer)
    assert (len(before), len(after)) == (1, 1)


def test_words_of_a_long_sentence_are_taken_where_they_have_context() -> None:
    tokenizer = tiny_tokenizer("wordpiece")
    sentence = ["film"] * 100
    windows = sentence_windows(tokenizer, [sentence], 42)  # 40 tokens and two special ones
    assert len(windows) > 2
    for window in windows:
        edge = [place for place in window.first if place in (1, 40)]
        whole = (0 in window.words) or (99 in window.words)
        assert whole or not edge  # only the sentence's own ends stand at the edge of a window
    assert sorted(word for window in windows for word in window.words) == list(range(100))


def test_a_marker_spelled_out_becomes_the_unknown_word() -> None:
    tokenizer = tiny_tokenizer("unigram")
    structural = [tokenizer.cls_token_id, tokenizer.mask_token_id]
    (window,) = sentence_windows(tokenizer, [["<mask>", "film"]], 20, structural)
    assert tokenizer.mask_token_id not in window.input_ids


def test_no_room_is_refused() -> None:
    with pytest.raises(ValueError, match="max_tokens is 2; expected more than the 2 special"):
        sentence_windows(tiny_tokenizer("bpe"), [["a"]], 2)
    assert sentence_windows(tiny_tokenizer("bpe"), [], 10) == []


def test_a_window_without_a_word_of_its_own_is_not_read() -> None:
    tokenizer = tiny_tokenizer("wordpiece")
    sentence = ["the", "film", "x" * 90, "is", "lovely"]
    windows = sentence_windows(tokenizer, [sentence], 16)
    assert all(window.words for window in windows)
    assert sorted(word for window in windows for word in window.words) == [0, 1, 2, 3, 4]


def test_a_whole_book_is_cut_in_linear_time() -> None:
    cuts = list(_cuts(list(range(200_000)), 62))
    assert sum(len(words) for *_, words in cuts) == 200_000
