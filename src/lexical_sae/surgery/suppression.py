"""Words cut out of a model: for as long as it is wanted, or for good.

The mask stands after the gate: the words are never open, whatever the text, so no logit can depend
on them. The backbone still reads them (zeroed output rows would blind an encoder whose embeddings
are tied), and other open words may carry what they meant: see `surgery.leak`.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lexical_sae.surgery.selection import WordSelection, chosen, find_words

if TYPE_CHECKING:
    from lexical_sae.model.lexical_sae import LexicalSAE


@dataclass(frozen=True, eq=False)
class SuppressedModel:
    """A model and the same model without some words; they share all weights.

    `view` is a `LexicalSAE` like any other: predict, explain, measure or save it. `original` is as
    it was, so leaving the view is all it takes to restore.
    """

    original: LexicalSAE
    selection: WordSelection
    view: LexicalSAE = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "view", without_words(self.original, self.coordinates))

    @property
    def coordinates(self) -> tuple[int, ...]:
        return self.selection.coordinates

    def restore(self) -> LexicalSAE:
        return self.original


def suppress_words(
    model: LexicalSAE,
    words: Iterable[str] = (),
    *,
    patterns: Iterable[str] = (),
    exact: bool = False,
) -> SuppressedModel:
    """The model without these words and their other forms; see `find_words`."""
    return SuppressedModel(model, chosen_words(model, words, patterns=patterns, exact=exact))


def suppress_token_globally(
    model: LexicalSAE,
    words: Iterable[str] = (),
    *,
    patterns: Iterable[str] = (),
    exact: bool = False,
) -> WordSelection:
    """Cut the words out of the model itself; `save_pretrained` keeps the cut, `model.restore()`
    undoes it."""
    selection = chosen_words(model, words, patterns=patterns, exact=exact)
    refuse_emptying(model, selection.coordinates)
    model.suppress(selection.coordinates)
    return selection


def chosen_words(
    model: LexicalSAE,
    words: Iterable[str],
    *,
    patterns: Iterable[str] = (),
    exact: bool = False,
) -> WordSelection:
    """What `find_words` finds; refused if it finds nothing."""
    if isinstance(words, str):
        raise ValueError(f"words is the text {words!r}; expected a list of words, e.g. [word].")
    if model.dictionary is None:
        raise ValueError("This model has no tokenizer, so its words have no names.")
    return chosen(find_words(model.dictionary, words, patterns=patterns, exact=exact))


def without_words(model: LexicalSAE, coordinates: Iterable[int]) -> LexicalSAE:
    """A model of its own that shares every weight and buffer with `model` but the mask."""
    gone = tuple(coordinates)
    refuse_emptying(model, gone)
    view, lexical = copy.copy(model), copy.copy(model.lexical)
    lexical._buffers = {**model.lexical._buffers, "keep": model.lexical.keep.clone()}
    view._modules = {**model._modules, "lexical": lexical}
    view.suppress(gone)
    return view


def suppressed_coordinates(model: LexicalSAE) -> tuple[int, ...]:
    """The coordinates that are cut out of a model."""
    return tuple((~model.lexical.keep).nonzero()[:, 0].tolist())


def refuse_emptying(model: LexicalSAE, coordinates: Iterable[int]) -> None:
    gone = {*suppressed_coordinates(model), *coordinates}
    if len(gone) >= model.lexical.keep.numel():
        raise ValueError(
            f"This would cut all {len(gone):,} words of the dictionary; at least one must stay."
        )
