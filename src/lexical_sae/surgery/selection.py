"""From words as people write them to coordinates of a dictionary, whatever its tokenizer.

A word stands for all coordinates that are shown as it or as another form of it: another case, the
plural, the other forms of a verb. What is found is said word by word, and so is what is not.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from lexical_sae.model.dictionary import Dictionary, with_subscript

MARKS = "Ġ▁Ċ "  # how tokenizers write a space before a word
NEAREST = 3


@dataclass(frozen=True)
class WordSelection:
    """Coordinates under what was asked for; what has none, with the nearest words there are."""

    found: dict[str, tuple[int, ...]]
    missing: dict[str, tuple[str, ...]]

    @property
    def coordinates(self) -> tuple[int, ...]:
        return tuple(sorted({v for found in self.found.values() for v in found}))

    def words(self, dictionary: Dictionary) -> tuple[str, ...]:
        return tuple(dictionary.words[v] for v in self.coordinates)

    def notes(self, dictionary: Dictionary) -> list[str]:
        """What was found for each word, and what was not: a line each."""
        lines = []
        for asked, coordinates in self.found.items():
            shown = sorted({dictionary.words[v] for v in coordinates})
            lines.append(f"{asked}: {', '.join(shown)}")
        return lines + [no_word(asked, near) for asked, near in self.missing.items()]


def chosen(selection: WordSelection) -> WordSelection:
    """The selection itself; refused if nothing was found."""
    if not selection.found:
        if not selection.missing:
            raise ValueError("No words were given; expected at least one.")
        raise ValueError(" ".join(no_word(*entry) for entry in selection.missing.items()))
    return selection


def no_word(asked: str, near: Sequence[str]) -> str:
    """The sentence about a word that the dictionary does not have."""
    advice = f"the nearest are {', '.join(near)}" if near else "and nothing is near it"
    return f"{asked!r} is not in the dictionary; {advice}."


def find_words(
    dictionary: Dictionary,
    words: Iterable[str] = (),
    *,
    patterns: Iterable[str] = (),
    exact: bool = False,
    language: str = "en",
) -> WordSelection:
    """The coordinates of words and of regular expressions (searched for in each word, case aside).

    Words bring their other forms along, by their lemma; with `exact` only those that differ in
    case. A word with senses stands for all of them, "bank₂" or "bank#2" for one. Needs the package
    simplemma unless `exact`.
    """
    by_word = dictionary.casefolded
    one_sense = {dictionary.words[v].casefold() for v in dictionary.senses}
    found: dict[str, tuple[int, ...]] = {}
    missing: dict[str, tuple[str, ...]] = {}
    for asked in dict.fromkeys(words):
        plain = bare(asked)
        if not plain:
            raise ValueError(f"{asked!r} is no word; expected letters.")
        plain = with_subscript(plain) if with_subscript(plain) in one_sense else plain
        forms = (
            {plain}
            if exact or plain in one_sense
            else {plain, *other_forms(plain, tuple(by_word), language)}
        )
        coordinates = sorted(v for form in forms for v in by_word.get(form, ()))
        if coordinates:
            found[asked] = tuple(coordinates)
        else:
            missing[asked] = tuple(difflib.get_close_matches(plain, by_word, n=NEAREST))
    for pattern in dict.fromkeys(patterns):
        names = enumerate(dictionary.plain_words)
        hits = tuple(v for v, name in names if compiled(pattern).search(name))
        if hits:
            found[f"/{pattern}/"] = hits
        else:
            missing[f"/{pattern}/"] = ()
    return WordSelection(found, missing)


def bare(word: str) -> str:
    """A word without the marks of any tokenizer, in one case."""
    plain = word.strip().lstrip(MARKS)
    return (plain[2:] if plain.startswith("##") else plain).casefold()


def compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern, re.IGNORECASE)
    except re.error as error:
        raise ValueError(
            f"{pattern!r} is no regular expression ({error}); give a plain word without --regex."
        ) from None


def other_forms(word: str, known: Sequence[str], language: str) -> set[str]:
    """Those of the known words that share the word's lemma. Only words with the same first letter
    are looked at: that leaves out suppletion (good, better), which means something else."""
    lemma = lemma_of(word, language)
    return {
        other for other in known if other[:1] == word[:1] and lemma_of(other, language) == lemma
    }


@lru_cache(maxsize=200_000)
def lemma_of(word: str, language: str = "en") -> str:
    try:
        from simplemma import lemmatize
    except ImportError:
        raise ImportError(
            "Other forms of a word need the package simplemma: pip install 'lexical-sae[surgery]', "
            "or ask for the exact words only."
        ) from None
    return lemmatize(word, lang=language).casefold()
