"""The dictionary: which vocabulary entries are coordinates, and how people write them."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


FEWEST_WORDS = 4000
_SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


@dataclass(frozen=True)
class Dictionary:
    """Coordinate v of the sparse vector is the token `token_ids[v]`, shown as `words[v]`.

    A token that stands several times has several senses, shown as bank₁, bank₂ in their order.
    """

    token_ids: tuple[int, ...]  # ascending, but for the further senses at the end
    words: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.token_ids)

    @cached_property
    def hash(self) -> str:
        """sha256 of ids and words in order."""
        return json_hash([list(self.token_ids), list(self.words)])

    @cached_property
    def _coordinates(self) -> dict[str, tuple[int, ...]]:
        found: dict[str, list[int]] = {}
        for index, word in enumerate(self.words):
            found.setdefault(word, []).append(index)
        for index, sense in self.senses.items():
            found.setdefault(sense.word, []).append(index)
        return {word: tuple(sorted(indices)) for word, indices in found.items()}

    def coordinates(self, word: str) -> tuple[int, ...]:
        """All coordinates shown as exactly this word (cased vocabularies may have several); for a
        word with senses those of all of them, for "bank₂" or "bank#2" that of one."""
        found = self._coordinates.get(word, ())
        return found if found else self._coordinates.get(with_subscript(word), ())

    @cached_property
    def senses(self) -> dict[int, Sense]:
        """The coordinates that are one of several senses of a word."""
        return {
            v: Sense(self.words[v].removesuffix(subscript(number)), number)
            for v, number in sense_numbers(self.token_ids).items()
        }

    @cached_property
    def plain_words(self) -> tuple[str, ...]:
        """`words` without the numbers of senses."""
        if not self.senses:
            return self.words
        return tuple(
            self.senses[v].word if v in self.senses else word for v, word in enumerate(self.words)
        )

    @cached_property
    def casefolded(self) -> dict[str, list[int]]:
        """Coordinates by word, whatever its case; a word with senses stands for all of them."""
        found: dict[str, list[int]] = {}
        for v, (shown, plain) in enumerate(zip(self.words, self.plain_words, strict=True)):
            for name in {shown.casefold(), plain.casefold()}:
                found.setdefault(name, []).append(v)
        return found

    def select(self, coordinates: Iterable[int]) -> Dictionary:
        kept = list(coordinates)
        return Dictionary(
            tuple(self.token_ids[v] for v in kept), tuple(self.words[v] for v in kept)
        )


@dataclass(frozen=True)
class Sense:
    """One of several coordinates of a word; numbered from 1, as people count."""

    word: str
    number: int


def sense_numbers(token_ids: Sequence[int]) -> dict[int, int]:
    """Coordinate → number of its sense, for every token that stands more than once."""
    places: dict[int, list[int]] = {}
    for v, token in enumerate(token_ids):
        places.setdefault(token, []).append(v)
    several = (found for found in places.values() if len(found) > 1)
    return {v: number for found in several for number, v in enumerate(found, 1)}


def dictionary_of(token_ids: Sequence[int], words: Sequence[str]) -> Dictionary:
    """The dictionary of tokens and their words as written: senses get their numbers."""
    shown = list(words)
    for v, number in sense_numbers(token_ids).items():
        shown[v] += subscript(number)
    return Dictionary(tuple(token_ids), tuple(shown))


def subscript(number: int) -> str:
    return str(number).translate(_SUBSCRIPTS)


def with_subscript(word: str) -> str:
    """bank#2, which every keyboard has, as bank₂."""
    plain, mark, number = word.rpartition("#")
    return plain + subscript(int(number)) if mark and number.isdecimal() else word


def json_hash(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def tokenizer_hash(tokenizer: PreTrainedTokenizerBase) -> str:
    """sha256 of what decides how a text becomes ids: vocabulary, normaliser, splitting.

    Padding and truncation are left out: they are set anew by every call.
    """
    backend: Any = tokenizer.backend_tokenizer
    state = json.loads(backend.to_str())
    for setting in ("padding", "truncation", "version"):
        state.pop(setting, None)
    return json_hash(state)


def surface(tokenizer: PreTrainedTokenizerBase, token: str) -> str:
    """A token as people write it: no "##", "Ġ" or "▁"."""
    return surface_of(tokenizer.convert_tokens_to_string, token)


def surface_of(decode: Callable[[list[str]], str], token: str) -> str:
    """The same by what turns a tokenizer's tokens into text."""
    text = decode([token]).strip()
    return text[2:] if text.startswith("##") and len(text) > 2 else text


def build_dictionary(
    tokenizer: PreTrainedTokenizerBase, kind: str, decoder_rows: int
) -> Dictionary:
    """`words`, `texts`: entries that the tokenizer itself gives, alone, for an alphabetic word of
    two letters or more inside a sentence. `all`: every entry that is not special.

    `words` asks the tokenizer instead of looking at its marks, so that it holds for WordPiece,
    BPE and Unigram alike: a continuation piece is never what a whole word is encoded to.
    """
    special = set(tokenizer.all_special_ids)
    ids = {
        index: token
        for token, index in tokenizer.get_vocab().items()
        if index not in special and index < decoder_rows  # decoders are often padded in size
    }
    shown = {index: surface(tokenizer, token) for index, token in sorted(ids.items())}
    if kind in ("words", "texts"):
        shown = _whole_words(tokenizer, shown)
    if not shown:
        raise ValueError(
            f"The tokenizer's {len(ids)} entries contain no whole alphabetic word; "
            "use dictionary='all'."
        )
    return Dictionary(tuple(shown), tuple(shown.values()))


def words_of_texts(
    tokenizer: PreTrainedTokenizerBase, dictionary: Dictionary, texts: Sequence[str]
) -> Dictionary:
    """The entries of `dictionary` that occur in `texts` as tokens. If fewer than `FEWEST_WORDS` do,
    others fill up to that number, since a small sample says little about the words of its kind:
    those of the lowest ids, which vocabularies give to the commonest, single characters last."""
    seen: set[int] = set()
    for start in range(0, len(texts), 1024):
        some: Any = tokenizer(list(texts[start : start + 1024]), add_special_tokens=False)
        seen.update(token for ids in some["input_ids"] for token in ids)
    kept = [v for v, token in enumerate(dictionary.token_ids) if token in seen]
    others = [v for v, token in enumerate(dictionary.token_ids) if token not in seen]
    others.sort(key=lambda v: len(dictionary.words[v]) == 1)
    return dictionary.select(sorted(kept + others[: max(0, FEWEST_WORDS - len(kept))]))


def _is_word(text: str) -> bool:
    """Letters and the marks on them only; two or more, or one that is a word of its own."""
    if not all(unicodedata.category(character)[0] in "LM" for character in text):
        return False
    if len(text) == 1:
        return unicodedata.name(text, "").startswith("CJK UNIFIED IDEOGRAPH")
    return len(text) > 1


def _whole_words(tokenizer: PreTrainedTokenizerBase, shown: dict[int, str]) -> dict[int, str]:
    candidates = [index for index, text in shown.items() if _is_word(text)]
    if not candidates:
        return {}
    # The comma ends whatever comes before, so that the word starts after a space as in a sentence.
    lead = ", "
    lead_ids = tokenizer(lead.strip(), add_special_tokens=False)["input_ids"]
    encoded: Any = tokenizer(
        [lead + shown[index] for index in candidates], add_special_tokens=False
    )
    return {
        index: shown[index]
        for index, ids in zip(candidates, encoded["input_ids"], strict=True)
        if ids == [*lead_ids, index]
    }
