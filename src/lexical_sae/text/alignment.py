"""Words of a sentence and the tokens that stand for them, in windows that a model can read.

A sentence is a list of words. It is read as one text, the words joined by spaces, so that every
family of tokenizers works as it does on texts; a token belongs to the word whose characters it
covers. A word that yields no token (a lone zero-width space) has no place and stays without one. A
sentence that is too long is read in windows that overlap, and every word is taken from the window
in which it has the most context.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lexical_sae.text.windows import best_window, window_starts

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True)
class Window:
    """A stretch of one sentence as a model reads it.

    `first[i]` is the token position of word `words[i]`, the first of its tokens; a word is listed
    in exactly one window of its sentence, or in none if it has no token.
    """

    sentence: int
    input_ids: tuple[int, ...]  # special tokens included
    offsets: tuple[tuple[int, int], ...]  # characters of each token in the joined text
    word_of: tuple[int, ...]  # [L] word of each token, −1 at special tokens
    words: tuple[int, ...]
    first: tuple[int, ...]


@dataclass(frozen=True)
class JoinedSentence:
    """The text that is read, and the characters of every word in it."""

    text: str
    spans: tuple[tuple[int, int], ...]


def join_words(words: Sequence[str]) -> JoinedSentence:
    spans, place = [], 0
    for word in words:
        spans.append((place, place + len(word)))
        place += len(word) + 1
    return JoinedSentence(" ".join(words), tuple(spans))


def sentence_windows(
    tokenizer: PreTrainedTokenizerBase,
    sentences: Sequence[Sequence[str]],
    max_tokens: int,
    structural: Sequence[int] = (),
) -> list[Window]:
    """All windows of all sentences, in order; `structural` ids spelled out in a text become the
    unknown word, as in `tokenise.encode`."""
    before, after = special_frame(tokenizer)
    room = max_tokens - len(before) - len(after)
    if room < 1:
        raise ValueError(
            f"max_tokens is {max_tokens}; expected more than the {len(before) + len(after)} "
            "special tokens."
        )
    joined = [join_words(words) for words in sentences]
    if not joined:
        return []
    encoded: Any = tokenizer(
        [sentence.text for sentence in joined],
        add_special_tokens=False,
        return_offsets_mapping=True,
        split_special_tokens=True,
    )
    typed, unknown = set(structural), tokenizer.unk_token_id
    found: list[Window] = []
    for index, (sentence, ids, offsets) in enumerate(
        zip(joined, encoded["input_ids"], encoded["offset_mapping"], strict=True)
    ):
        if unknown is not None:
            ids = [unknown if token in typed else token for token in ids]
        places = [(int(a), int(z)) for a, z in offsets]
        starts = [span[0] for span in sentence.spans]
        word_of = [_word_at(sentence.spans, starts, a, z) for a, z in places]
        for start, end, owned in _cuts(word_of, room):
            if owned:  # a window without a word of its own decides nothing
                part = range(start, end)
                found.append(_window(index, before, after, ids, places, word_of, part, owned))
    return found


def special_frame(tokenizer: PreTrainedTokenizerBase) -> tuple[list[int], list[int]]:
    """The special tokens that the tokenizer puts before and after a text."""
    probe: Any = tokenizer("a", return_special_tokens_mask=True)
    mask, ids = probe["special_tokens_mask"], probe["input_ids"]
    real = [i for i, special in enumerate(mask) if not special]
    return list(ids[: real[0]]), list(ids[real[-1] + 1 :])


def _word_at(spans: Sequence[tuple[int, int]], starts: Sequence[int], start: int, end: int) -> int:
    """The word whose characters a token covers; byte-level tokens may begin with the space before
    it. −1 for a token that covers nothing, such as a lone space."""
    word = max(0, bisect_right(starts, start) - 1)
    while word < len(spans):
        left, right = spans[word]
        if max(left, start) < min(right, end):
            return word
        if left >= end:
            break
        word += 1
    return -1


def _cuts(word_of: Sequence[int], room: int) -> Iterator[tuple[int, int, set[int]]]:
    """(start, end, words it owns) of each window over a sentence's tokens."""
    total = len(word_of)
    if total <= room:
        yield 0, total, {word for word in word_of if word >= 0}
        return
    starts = window_starts(total, room)
    owner: dict[int, tuple[int, int]] = {}  # word: (window, context), the largest context wins
    for place, word in enumerate(word_of):
        if word < 0 or (place > 0 and word_of[place - 1] == word):
            continue
        found = best_window(place, starts, room, total)
        if word not in owner or found[1] > owner[word][1]:
            owner[word] = found
    owned: list[set[int]] = [set() for _ in starts]
    for word, (number, _) in owner.items():
        owned[number].add(word)
    for start, words in zip(starts, owned, strict=True):
        yield start, start + room, words


def _window(
    sentence: int,
    before: list[int],
    after: list[int],
    ids: Sequence[int],
    offsets: Sequence[tuple[int, int]],
    word_of: Sequence[int],
    part: range,
    owned: set[int],
) -> Window:
    words, first, seen = [], [], set()
    for place in part:
        word = word_of[place]
        starts = place == 0 or word_of[place - 1] != word
        if word in owned and word not in seen and starts:
            seen.add(word)
            words.append(word)
            first.append(len(before) + place - part.start)
    nothing = (0, 0)
    return Window(
        sentence=sentence,
        input_ids=(*before, *(ids[i] for i in part), *after),
        offsets=(*[nothing] * len(before), *(offsets[i] for i in part), *[nothing] * len(after)),
        word_of=(*[-1] * len(before), *(word_of[i] for i in part), *[-1] * len(after)),
        words=tuple(words),
        first=tuple(first),
    )
