"""Tokens that carry grammar rather than meaning: punctuation and English function words.

With `positions="content"` no word can open at them, so that a word opens at the one that means it
and not at the comma behind it. Negations, contrasts and degrees ("not", "but", "too") stay: they
change what a text says.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

from lexical_sae.model.dictionary import surface

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_ENGLISH = {
    "articles, demonstratives, additions": "a an the this that these those and or nor as if than "
    "then so such both either each",
    "prepositions": "of to in on at by for from with into onto upon about over under between among "
    "through during before after above below across along around behind beside toward towards "
    "within",
    "auxiliaries": "is are was were be been being am do does did done doing has have had having "
    "will would shall should can could may might must",
    "pronouns": "i me my mine myself you your yours yourself he him his himself she her hers "
    "herself it its itself we us our ours ourselves they them their theirs themselves one who whom "
    "whose which what when where why how there here",
    "what is left of contractions": "s t d m ll re ve o y",
}
ENGLISH = frozenset(word for words in _ENGLISH.values() for word in words.split())
_MARKS = ("P", "Z", "C")  # punctuation, separators, control; symbols such as emoji can mean much
_EMPTY_SYMBOLS = frozenset("`^|~<>=+")


def is_function_word(text: str) -> bool:
    """Whether a token, as people write it, carries no meaning of its own."""
    if text.lower() in ENGLISH:
        return True
    return all(unicodedata.category(c)[0] in _MARKS or c in _EMPTY_SYMBOLS for c in text)


def function_token_ids(tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """Ids of all such tokens; a continuation piece ("##s") is part of a word and not among them."""
    special = set(tokenizer.all_special_ids)
    return sorted(
        index
        for token, index in tokenizer.get_vocab().items()
        if index not in special
        and not token.startswith("##")
        and is_function_word(surface(tokenizer, token))
    )
