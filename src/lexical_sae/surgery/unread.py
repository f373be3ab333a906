"""Words that are left unread: that they cannot matter, and what they gave while they were read.

What a model computes is computed from the tokens of what is left of a text, so two texts that
differ in such words only are one text to it. The test would find a reading that is not so: in real
texts these words are put in at random places, exchanged and dropped, in other cases, with accents
and invisible characters, and the tokens must be the same.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from lexical_sae.attribution.contributions import compute_attribution_tensor
from lexical_sae.attribution.words import position_contributions
from lexical_sae.evaluation.reading import BATCH
from lexical_sae.model.mode import in_mode
from lexical_sae.surgery.effect import in_words
from lexical_sae.surgery.non_interference import FILLINGS
from lexical_sae.text.unread import without_unread

if TYPE_CHECKING:
    from lexical_sae.model.lexical_sae import LexicalSAE

MOST_AT_ONCE = 3  # words put into a text
MARKS = ("\u0301", "\u200b", "\u00ad")  # an accent, a space of no width, a hyphen that is not shown


@dataclass(frozen=True)
class UnreadTest:
    """How many texts were changed in words that are not read, and how many of them were read
    otherwise than the text itself."""

    words: tuple[str, ...]
    not_put_in: tuple[str, ...]  # beside other words they could be another phrase of the list
    fillings: int
    differing: int


def check_unread(
    model: LexicalSAE,
    texts: Sequence[str],
    *,
    seed: int = 0,
    advance: Callable[[int], None] = lambda rows: None,
) -> UnreadTest:
    """At least FILLINGS of the texts, in turn; fewer where little could be changed."""
    words = tuple(model.config.unread)
    fillers, draw = apart_from_phrases(words), random.Random(seed)
    own = [row for part in _batches(texts) for row in _tokens(model, part)]
    fillings = differing = 0
    for start in range(0, 2 * FILLINGS, BATCH):
        if fillings >= FILLINGS:
            break
        some = [i % len(texts) for i in range(start, start + BATCH)]
        filled = [filled_text(texts[i], words, fillers, draw) for i in some]
        rows = zip(some, filled, _tokens(model, filled), strict=True)
        changed = [read != own[i] for i, text, read in rows if text != texts[i]]
        fillings += len(changed)
        differing += sum(changed)
        advance(len(some))
    left = tuple(word for word in words if word not in fillers)
    return UnreadTest(words, left, fillings, differing)


def apart_from_phrases(words: Sequence[str]) -> list[str]:
    """Those that cannot become part of another phrase of the list, whatever stands beside them:
    "african" before "american" would be a word that was asked for itself."""
    parts = {word: set(re.split(r"[\s\-]+", word)) for word in words}
    phrases = {word: found for word, found in parts.items() if len(found) > 1}
    return [
        word
        for word, found in parts.items()
        if not any(found & other for phrase, other in phrases.items() if phrase != word)
    ]


def filled_text(
    text: str, words: Sequence[str], fillers: Sequence[str], draw: random.Random
) -> str:
    """The text with every word of the list kept, dropped or exchanged, and some more put in. With
    no fillers words are dropped at the most."""
    pieces, done = [], 0
    for start, end in without_unread(text, words).gone:
        before, behind = text[done:start], text[end : end + 1]
        apart = before[-1:].isspace() and (behind == "" or behind.isspace())
        choices = ["keep", *(["exchange"] if fillers else []), *(["drop"] if apart else [])]
        what = draw.choice(choices)
        if what == "drop":  # with the space before it; beside punctuation none goes
            pieces.append(before.rstrip())
        else:
            pieces += [before, text[start:end] if what == "keep" else _some(fillers, draw)]
        done = end
    found = "".join([*pieces, text[done:]]).strip()
    for _ in range(draw.randint(1, MOST_AT_ONCE) if fillers else 0):
        places = [0, *(gap.start() for gap in re.finditer(r"\s+", found)), len(found)]
        place, word = draw.choice(places), _some(fillers, draw)
        found = f"{found[:place]} {word}{found[place:]}" if place else f"{word} {found}"
    return found


def _some(fillers: Sequence[str], draw: random.Random) -> str:
    word = draw.choice(fillers)
    place = draw.randint(1, len(word))
    marked = f"{word[:place]}{draw.choice(MARKS)}{word[place:]}"
    return draw.choice([word, word.upper(), word.title(), marked])


def _batches(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(texts), BATCH):
        yield texts[start : start + BATCH]


def _tokens(model: LexicalSAE, texts: Sequence[str]) -> list[list[int]]:
    encoded = model.encode(texts)
    rows = zip(encoded.input_ids, encoded.attention_mask.bool(), strict=True)
    return [ids[mask].tolist() for ids, mask in rows]


@torch.no_grad()
def contributed_by(
    model: LexicalSAE,
    texts: Sequence[str],
    words: Sequence[str],
    apart: Sequence[int],
    advance: Callable[[int], None] = lambda rows: None,
) -> Tensor:
    """[N]: what the decided logit of each text has from coordinates that opened at these words of
    it, those of `apart` not counted. `model` reads them."""
    spans = {text: without_unread(text, words).gone for text in texts}
    given_by = dict.fromkeys(spans, 0.0)
    with in_mode(model, training=False):
        for part in _batches([text for text, gone in spans.items() if gone]):
            encoded = model.encode(part)
            state = model.classify(**encoded.model_inputs())
            given = compute_attribution_tensor(state, row_classes=state.predicted)
            given = given * ~in_words(state.open_words, apart)
            by_position = position_contributions(state, given, encoded.input_ids.shape[1])
            marked = [
                [any(a < right and z > left for left, right in spans[text]) for a, z in offsets]
                for text, offsets in zip(part, encoded.offsets, strict=True)
            ]
            sums = (by_position * torch.tensor(marked)).sum(1).tolist()
            given_by.update(zip(part, sums, strict=True))
            advance(len(part))
    return torch.tensor([given_by[text] for text in texts])
