"""What a tagger reads: a sentence of words that are given, or a text that is split into words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from lexical_sae.text.alignment import join_words
from lexical_sae.text.encodable import check_encodable

# Initials with their full stops, numbers with their commas, words with their hyphens, endings
# after an apostrophe ('s), and every other sign on its own: near to how news corpora are split.
_WORD = re.compile(r"(?:[^\W\d_]\.){2,}|\d+(?:[.,:/]\d+)+|\w+(?:-\w+)*|['’]\w+|[^\w\s]")


@dataclass(frozen=True)
class Sentence:
    """Words, and where they stand in a text."""

    text: str
    words: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]  # characters of each word in `text`


def read_sentence(given: str | Sequence[str], where: str = "the sentence") -> Sentence:
    """A text, or the words of a sentence; `where` names it in messages."""
    if isinstance(given, str):
        check_encodable(given, where)
        places = _word_places(given)
        if not places:
            raise ValueError(f"{where} is {given!r}; expected a text with at least one word.")
        return Sentence(given, tuple(given[a:z] for a, z in places), tuple(places))
    if not isinstance(given, (list, tuple)) or not given:
        found = "an empty list" if isinstance(given, (list, tuple)) else type(given).__name__
        raise ValueError(f"{where} is {found}; expected a text or a list of words.")
    for index, word in enumerate(given):
        if not isinstance(word, str) or not word.strip():
            raise ValueError(f"{where}: word {index + 1} is {word!r}; expected a word.")
        check_encodable(word, where, f"word {index + 1}")
    joined = join_words(given)
    return Sentence(joined.text, tuple(given), joined.spans)


def _word_places(text: str) -> list[tuple[int, int]]:
    """Where the words of a text are. Accents and vowel signs that are characters of their own, and
    joiners, are no letters to `re`: they hold what stands on both sides together."""
    places: list[tuple[int, int]] = []
    joined = False  # whether the last piece ends in such a sign
    for match in _WORD.finditer(text):
        start, end = match.span()
        holds = text[start] in "\u200c\u200d" or unicodedata.category(text[start])[0] == "M"
        touches = bool(places) and places[-1][1] == start
        if touches and (holds or (joined and text[start].isalnum())):
            places[-1] = (places[-1][0], end)
        else:
            places.append((start, end))
        joined = holds
    return places


def read_sentences_given(given: Sequence[str | Sequence[str]]) -> list[Sentence]:
    """Several sentences, each a text or a list of words."""
    if isinstance(given, str):
        raise ValueError("sentences is one string; expected a list of texts or of word lists.")
    if len(given) == 0:
        raise ValueError("sentences is empty; expected at least one.")
    return [read_sentence(one, f"sentences[{index}]") for index, one in enumerate(given)]
