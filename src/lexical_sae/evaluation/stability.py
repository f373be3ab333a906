"""Step 11, second part: is the explanation the same tomorrow, and in other words?

The same text must get bitwise the same explanation, alone or among others. A change that means
nothing, of case or to a synonym, should move it little; LIME's own movement is given beside it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from lexical_sae.evaluation.perturbation import Floats

# Pairs that can stand for each other in most sentences, in both directions.
SYNONYMS = (
    *(
        "film movie",
        "great excellent",
        "funny amusing",
        "boring dull",
        "bad poor",
        "awful terrible",
    ),
    *(
        "smart clever",
        "big large",
        "small little",
        "begin start",
        "story tale",
        "scary frightening",
    ),
    *(
        "pretty beautiful",
        "sad unhappy",
        "happy glad",
        "quick fast",
        "hard difficult",
        "easy simple",
    ),
    *("actor performer", "whole entire", "nearly almost", "often frequently", "maybe perhaps"),
    *("tiny minuscule", "odd strange", "angry furious", "kid child", "job task", "silly foolish"),
    *("rich wealthy", "end finish", "answer reply", "buy purchase", "help assist", "show display"),
    *("enough sufficient", "nice pleasant", "quiet silent", "moving touching", "tedious tiresome"),
)
_OTHER = {}
for _pair in SYNONYMS:
    _a, _b = _pair.split()
    _OTHER[_a], _OTHER[_b] = _b, _a
_WORD = re.compile(r"[A-Za-z]+")
_ARTICLE = re.compile(r"\b(a)n?(\s+)$", re.IGNORECASE)


def with_synonym(text: str) -> str | None:
    """The text with its first word that has a synonym replaced; None if there is none."""
    for match in _WORD.finditer(text):
        other = _OTHER.get(match.group().lower())
        if other is not None:
            shown = other.capitalize() if match.group()[0].isupper() else other
            before = _with_article(text[: match.start()], shown)
            return before + shown + text[match.end() :]
    return None


def _with_article(before: str, word: str) -> str:
    """The text before a word, with "a" or "an" at its end as the word asks for."""
    wanted = "an" if word[0].lower() in "aeiou" else "a"
    return _ARTICLE.sub(lambda found: found[1] + wanted[1:] + found[2], before)


def with_other_case(text: str) -> str:
    """Upper case becomes lower; a text without any is put into capitals."""
    return text.lower() if text.lower() != text else text.upper()


@dataclass(frozen=True)
class Movement:
    """How far scores of the same features moved: 0 not at all, 2 turned around."""

    distance: float  # 1 − cosine
    top_kept: float  # share of the five largest that stay among them


def movement(before: Floats, after: Floats) -> Movement | None:
    """None where one of the two is all zero, so that it has no direction."""
    sizes = float(np.linalg.norm(before)), float(np.linalg.norm(after))
    if not all(sizes):
        return None
    cosine = float(np.clip(before @ after / (sizes[0] * sizes[1]), -1.0, 1.0))
    k = min(5, len(before))
    top = set(np.argsort(-np.abs(before), kind="stable")[:k].tolist())
    kept = top & set(np.argsort(-np.abs(after), kind="stable")[:k].tolist())
    return Movement(1 - cosine, len(kept) / k)
