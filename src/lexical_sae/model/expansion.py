"""Expansion: chosen words of a model get several senses, each with a coordinate of its own.

A sense starts with the threshold and the head's row of its word, so that a position's logits stay
what they were; a text in which a word has two senses now counts both, as it would two words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from lexical_sae.model.config import LexicalSAEConfig
from lexical_sae.model.dictionary import dictionary_of
from lexical_sae.model.sense_choice import (
    FEWEST,
    WordChoice,
    choose_words,
    fit_route,
    score_word,
)
from lexical_sae.model.sense_contexts import Contexts, word_contexts
from lexical_sae.model.senses import SenseRouter

if TYPE_CHECKING:
    from lexical_sae.model.lexical_sae import LexicalSAE

MOST_SENSES = 9


def expand_words(
    model: LexicalSAE,
    texts: Sequence[str],
    words: Sequence[str] | None = None,
    *,
    senses: int = 2,
    most_words: int = 16,
) -> list[WordChoice]:
    """Give `words` several senses, or the `most_words` whose contexts in `texts` fall apart most.

    The model is changed in place; returned is which words, with the score of each.
    """
    _check(model, senses)
    if words is None:
        contexts = word_contexts(model, texts, open_only=True)
        choices = choose_words(contexts, most_words, senses=senses)
        if not choices:
            raise ValueError(
                f"In the {len(texts):,} texts no word stands {FEWEST} times in contexts that fall "
                "apart; expected more texts, or the words themselves."
            )
    else:
        wanted = named_words(model, words)
        contexts = word_contexts(model, texts, list(wanted.values()))
        counts = contexts.counts()
        for word, v in wanted.items():
            if counts.get(v, 0) < 2 * senses:
                raise ValueError(
                    f"{word!r} stands in {counts.get(v, 0)} places of the {len(texts):,} texts; "
                    f"expected at least {2 * senses} to tell {senses} senses apart."
                )
        choices = [score_word(contexts, v, senses=senses) for v in wanted.values()]
    routes = fit_routes(contexts, [choice.coordinate for choice in choices], senses)
    add_senses(model, [choice.coordinate for choice in choices], *routes)
    return choices


def _check(model: LexicalSAE, senses: int) -> None:
    if model.lexical.senses is not None:
        raise ValueError("This model's words have senses already; expand the one it came from.")
    if not 2 <= senses <= MOST_SENSES:
        raise ValueError(f"senses is {senses}; expected 2 to {MOST_SENSES}.")


def named_words(model: LexicalSAE, words: Sequence[str]) -> dict[str, int]:
    """The coordinate of each word."""
    if isinstance(words, str) or not words:
        raise ValueError(f"words is {words!r}; expected a list of words, e.g. ['bank'].")
    assert model.dictionary is not None
    found = {}
    for word in dict.fromkeys(words):
        coordinates = model.dictionary.coordinates(word)
        if not coordinates:
            raise ValueError(f"{word!r} is not in the dictionary; expected one of its words.")
        found[word] = coordinates[0]
    return found


def fit_routes(contexts: Contexts, words: Sequence[int], senses: int) -> tuple[Tensor, Tensor]:
    """R [K, M, H] and r [K, M] by the contexts of each word."""
    found = [fit_route(contexts.of(v), senses) for v in words]
    return torch.stack([R for R, _ in found]), torch.stack([r for _, r in found])


@torch.no_grad()
def add_senses(model: LexicalSAE, words: Sequence[int], R: Tensor, r: Tensor) -> None:
    """Append the further senses of `words` to dictionary, thresholds, mask and head."""
    _check(model, R.shape[1])
    lexical, senses = model.lexical, R.shape[1]
    plain, size = lexical.weight.shape
    config = model.config.to_dict() | {
        "dictionary_size": plain + len(words) * (senses - 1),
        "expanded_words": list(words),
        "senses": senses,
    }
    model.config = LexicalSAEConfig.from_dict(config)
    router = SenseRouter(words, senses, plain, size).to(lexical.weight)
    router.weight.copy_(R.flatten(0, 1))
    router.bias.copy_(r.flatten())
    lexical.senses = router
    copied = torch.cat([torch.arange(plain), router.words.cpu().repeat_interleave(senses - 1)])
    copied = copied.to(lexical.weight.device)
    for name in ("token_ids", "keep"):
        setattr(lexical, name, getattr(lexical, name)[copied].clone())
    lexical.threshold = rows_of(lexical.threshold, copied)
    table = model.head.word_table()
    for name, parameter in list(model.head.named_parameters()):
        if parameter is table:
            setattr(model.head, name, rows_of(table, copied))
    model.head.count_senses(words, senses)
    if model.dictionary is not None:
        old, which = model.dictionary, copied.tolist()
        model.dictionary = dictionary_of(
            [old.token_ids[v] for v in which], [old.words[v] for v in which]
        )


def rows_of(parameter: nn.Parameter, rows: Tensor) -> nn.Parameter:
    """A parameter of these rows."""
    return nn.Parameter(parameter.detach()[rows].clone(), requires_grad=parameter.requires_grad)
