"""Words that are taken out of a text before anything reads it.

What is left is read as the text without these words: which of them stood at a place, in which case,
and how often in a row, nothing that follows can tell.

A word is looked for as tokenizers may come to see it: case, accents and invisible characters aside.
It begins and ends where no other letter or digit is its neighbour, Chinese and Japanese characters
apart; the words of a phrase may be joined by spaces or hyphens. Another spelling is another word.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

Span = tuple[int, int]
PLAIN = re.compile(r"[\x20-\x7e\t\n\r]*")  # characters that folding keeps one by one
NOT_FOR_TAGGERS = (
    "A tagger has to read a word to tag it, so only classifiers leave words unread; cut the words' "
    "coordinates instead."
)
BETWEEN = r"[\s\-\u2010-\u2015]+"
# a letter or a digit; tokenizers split at ideographs, so a word may stand among those
IN_WORD = r"[^\W_\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002fa1f]"
ROUNDS = 16  # what is left may be a phrase, and be around one: "african muslim american"


@dataclass(frozen=True)
class Remaining:
    """What is left of a text, and where it stood."""

    text: str
    gone: tuple[Span, ...] = ()  # characters of the words that were taken out
    places: tuple[int, ...] | None = None  # [len(text)] of each in the whole; None: as it was

    def in_whole(self, start: int, end: int) -> Span:
        """Characters of the whole text for a stretch of what is left."""
        if self.places is None:
            return start, end
        if start >= end:
            place = self.places[start - 1] + 1 if start else 0
            return place, place
        # of a token on both sides of what was taken out the longer side
        runs: list[Span] = []
        for place in self.places[start:end]:
            if runs and place == runs[-1][1]:
                runs[-1] = runs[-1][0], place + 1
            else:
                runs.append((place, place + 1))
        return max(runs, key=lambda run: run[1] - run[0])


def without_unread(text: str, words: Sequence[str]) -> Remaining:
    """The text without these words. Of the spaces around a word one side goes with it, and so do
    those around the text: a word may have been its first or last."""
    left = Remaining(text)
    if not words:
        return left
    for _ in range(ROUNDS):
        # tokenizers drop an invisible character, or part words at it
        found = _once(left.text, tuple(words), "") or _once(left.text, tuple(words), " ")
        if found is None:
            break
        left = _of_whole(left, found)
    start = len(left.text) - len(left.text.lstrip())
    end = max(start, len(left.text.rstrip()))
    if (start, end) == (0, len(left.text)):
        return left
    return _of_whole(left, Remaining(left.text[start:end], (), tuple(range(start, end))))


def _of_whole(left: Remaining, found: Remaining) -> Remaining:
    """What was found in what was left, with the places of the whole text."""
    assert found.places is not None
    places = found.places if left.places is None else tuple(left.places[i] for i in found.places)
    gone = list(left.gone)
    for start, end in found.gone:  # with what stood in it and is gone already
        first, last = (
            (start, end - 1) if left.places is None else (left.places[start], left.places[end - 1])
        )
        gone.append((first, last + 1))
    return Remaining(found.text, _merged(gone), places)


def _merged(spans: Sequence[Span]) -> tuple[Span, ...]:
    """In order; a phrase that was found around a word that had been in it is one."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return tuple(merged)


def checked_words(words: object) -> list[str]:
    """A list of words that can be looked for, without repetitions and in order."""
    if isinstance(words, str) or not isinstance(words, Iterable) or isinstance(words, Mapping):
        raise ValueError(f"unread is {words!r}; expected a list of words.")
    found = set()
    for word in words:
        if not isinstance(word, str) or not re.search(r"[^\W_]", fold(word)[0]):
            raise ValueError(f"unread holds {word!r}; expected words of letters or digits.")
        found.add(word)
    return sorted(found)


def _once(text: str, words: tuple[str, ...], unseen: str) -> Remaining | None:
    """None if none of the words is there."""
    folded, origin = fold(text, unseen)
    pattern = _pattern(words)
    edge = [*origin, len(text)]  # up to the next letter, so that marks on a last letter go with it
    spans = [
        (start, end)
        for start, end in (match.span() for match in pattern.finditer(folded))
        # no part of a character: "½" is searched as 1⁄2
        if edge[start] != edge[start - 1] and edge[end] != edge[end - 1]
    ]
    if not spans:
        return None
    places: list[int] = []
    done = 0
    for start, end in _with_spaces(folded, spans):
        places.extend(range(done, edge[start] if start else 0))
        done = edge[end]
    places.extend(range(done, len(text)))
    gone = tuple((origin[start], origin[end - 1] + 1) for start, end in spans)
    return Remaining("".join(text[i] for i in places), gone, tuple(places))


def _with_spaces(text: str, spans: Sequence[Span]) -> Iterator[Span]:
    """What goes: neighbouring words together, and the spaces before them if there are some behind
    them too (those behind them where the text begins), so that nothing is joined that was apart."""
    for start, end in _joined(text, spans):
        before, behind = start, end
        while before and text[before - 1].isspace():
            before -= 1
        while behind < len(text) and text[behind].isspace():
            behind += 1
        if before == 0:
            yield 0, behind
        elif before < start and (behind > end or end == len(text)):
            yield before, end
        else:
            yield start, end


def _joined(text: str, spans: Sequence[Span]) -> Iterator[Span]:
    start, end = spans[0]
    for first, last in spans[1:]:
        if text[end:first].isspace():
            end = last
        else:
            yield start, end
            start, end = first, last
    yield start, end


def fold(text: str, unseen: str = "") -> tuple[str, Sequence[int]]:
    """The text as it is searched, and where each of its characters stood; `unseen` stands for what
    is invisible."""
    if PLAIN.fullmatch(text):
        return text.lower(), range(len(text))
    folded, origin = [], []
    for i, whole in enumerate(text):
        for c in unicodedata.normalize("NFKD", whole).casefold():
            kind = unicodedata.category(c)
            if kind == "Mn":
                continue
            if c == "\ufffd" or (kind[0] == "C" and c not in "\t\n\r"):
                c = unseen
            if c:
                folded.append(c)
                origin.append(i)
    return "".join(folded), origin


@lru_cache(maxsize=64)
def _pattern(words: tuple[str, ...]) -> re.Pattern[str]:
    parts = {BETWEEN.join(map(re.escape, fold(word)[0].split())) for word in words}
    longest_first = sorted(parts, key=lambda part: (-len(part), part))
    return re.compile(rf"(?<!{IN_WORD})(?:{'|'.join(longest_first)})(?!{IN_WORD})")
