"""What goes when words go: their coordinates are cut, they are left unread, or both.

A cut coordinate never opens, so no decision can depend on it; the backbone still reads the word,
and may open others beside it. A word that is left unread is taken out of every text before the
backbone reads it, so no decision can depend on the word at all; others may still open its
coordinate.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from lexical_sae.model.dictionary import Dictionary
from lexical_sae.surgery.selection import (
    WordSelection,
    bare,
    chosen,
    find_words,
    no_word,
)
from lexical_sae.text.unread import checked_words

HOW = ("cut", "unread", "both")


@dataclass(frozen=True)
class Removal:
    """The words that were asked for, and what of them goes."""

    selection: WordSelection
    coordinates: tuple[int, ...]  # cut
    unread: tuple[str, ...]  # as they are looked for in texts

    def notes(self, dictionary: Dictionary) -> list[str]:
        """What was found for each word, and what was not: a line each."""
        if not self.unread:
            return self.selection.notes(dictionary)
        shown = WordSelection(self.selection.found, {}).notes(dictionary)
        missing = [
            f"{no_word(asked, near)} It is left unread all the same."
            for asked, near in self.selection.missing.items()
        ]
        return shown + missing


def removal_of(
    dictionary: Dictionary,
    words: Iterable[str] = (),
    *,
    patterns: Iterable[str] = (),
    exact: bool = False,
    how: str = "cut",
) -> Removal:
    """The words and their other forms; refused if there is nothing to remove."""
    if isinstance(words, str):
        raise ValueError(f"words is the text {words!r}; expected a list of words, e.g. [word].")
    if how not in HOW:
        raise ValueError(f"how is {how!r}; expected one of {', '.join(HOW)}.")
    words = list(words)
    found = find_words(dictionary, words, patterns=patterns, exact=exact)
    forms = () if how == "cut" else forms_in_texts(dictionary, found, exact=exact)
    if not forms:
        chosen(found)
    return Removal(found, () if how == "unread" else found.coordinates, forms)


def forms_in_texts(
    dictionary: Dictionary, found: WordSelection, *, exact: bool = False
) -> tuple[str, ...]:
    """As texts may have them: each word as it was given and with an s, and its forms that the
    dictionary has. Patterns are known by the words that they were found in."""
    plain = dictionary.plain_words
    forms = {plain[v].casefold() for v in found.coordinates}
    one_sense = {dictionary.words[v].casefold() for v in dictionary.senses}
    for asked in (*found.found, *found.missing):
        if asked.startswith("/"):
            continue
        word = bare(asked)
        if word in one_sense or re.search(r"#\d+$", word):
            raise ValueError(
                f"{asked!r} is one sense of a word, and a text holds the word: it can be cut, but "
                "not left unread."
            )
        forms.add(word)
        if not exact:
            forms.add(f"{word}s")
    return tuple(checked_words(forms))
