"""Needles in haystacks: a short labelled text among neutral sentences, at a known place."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from lexical_sae.studies.neutral_text import neutral_sentences
from lexical_sae.text.dataset import TextDataset

ALONE = 0  # the "length" of a needle without a haystack


@dataclass(frozen=True)
class Haystack:
    """A text and the needle in it; `length` is the number of words that was asked for."""

    text: str
    label: int
    needle: int  # which one
    length: int
    asked: float  # the place that was asked for: a needle stands between sentences
    place: float  # share of the filler's words that stand before it in fact
    start: int  # characters of the needle in the text
    end: int

    @property
    def needle_words(self) -> float:
        """Share of the words that are the needle's."""
        return len(self.text[self.start : self.end].split()) / len(self.text.split())


def choose_needles(data: TextDataset, count: int, most_words: int, seed: int) -> TextDataset:
    """`count` texts of two to `most_words` words, as many of each class."""
    each = count // len(data.label_names)
    if not each:
        raise ValueError(
            f"needles is {count}; expected at least one for each of the "
            f"{len(data.label_names)} classes of {data.name}."
        )
    rows = list(range(len(data)))
    random.Random(seed).shuffle(rows)
    chosen: list[int] = []
    for label, name in enumerate(data.label_names):
        fit = [
            row
            for row in rows
            if data.labels[row] == label and 2 <= len(data.texts[row].split()) <= most_words
        ]
        if len(fit) < each:
            raise ValueError(
                f"{data.name} has {len(fit)} texts of class {name!r} with 2 to {most_words} words, "
                f"and {each} are wanted; lower needles or raise the shortest of lengths."
            )
        chosen += fit[:each]
    return data.select(sorted(chosen))


def alone(needles: TextDataset) -> list[Haystack]:
    """The needles without hay: the accuracy that no length can be expected to better."""
    stripped = [text.strip() for text in needles.texts]
    return [
        Haystack(text, label, number, ALONE, 0.0, 0.0, 0, len(text))
        for number, (text, label) in enumerate(zip(stripped, needles.labels, strict=True))
    ]


def haystacks(
    needles: TextDataset, length: int, places: Sequence[float], seed: int
) -> list[Haystack]:
    """Every needle at every place of the same sentences, about `length` words in all.

    Few sentences have few places between them: where two of `places` come to the same one, the text
    is made once, for the nearer of them."""
    found = []
    for number, (text, label) in enumerate(zip(needles.texts, needles.labels, strict=True)):
        needle = text.strip()
        draw = random.Random(f"{seed} {length} {number}")
        hay = neutral_sentences(max(0, length - len(needle.split())), draw)
        words = [len(sentence.split()) for sentence in hay]
        share = [sum(words[:cut]) / max(1, sum(words)) for cut in range(len(hay) + 1)]
        for cut, asked in _cuts(share, places).items():
            start = sum(len(sentence) + 1 for sentence in hay[:cut])
            whole = " ".join([*hay[:cut], needle, *hay[cut:]])
            end = start + len(needle)
            found.append(Haystack(whole, label, number, length, asked, share[cut], start, end))
    return found


def _cuts(share: Sequence[float], places: Sequence[float]) -> dict[int, float]:
    """After how many sentences the needle stands, with the place that was asked for; `share` of the
    filler stands before each cut."""
    found: dict[int, float] = {}
    for place in places:
        cut = min(range(len(share)), key=lambda one: abs(share[one] - place))
        if cut not in found or abs(share[cut] - place) < abs(share[cut] - found[cut]):
            found[cut] = place
    return found


def only_hay(length: int, count: int, seed: int) -> list[str]:
    """Texts without a needle."""
    return [
        " ".join(neutral_sentences(length, random.Random(f"{seed} hay {length} {number}")))
        for number in range(count)
    ]
