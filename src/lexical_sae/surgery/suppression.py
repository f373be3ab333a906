"""Words removed from a model: for as long as it is wanted, or for good.

A cut is a mask after the gate: the words are never open, whatever the text, so no logit can depend
on them. The backbone still reads them (zeroed output rows would blind an encoder whose embeddings
are tied), and other open words may carry what they meant: see `surgery.leak`. Words that are left
unread do not reach the backbone: see `text.unread`.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lexical_sae.surgery.removal import Removal, removal_of
from lexical_sae.surgery.selection import WordSelection

if TYPE_CHECKING:
    from lexical_sae.model.lexical_sae import LexicalSAE


@dataclass(frozen=True, eq=False)
class SuppressedModel:
    """A model and the same model without some words; they share all weights.

    `view` is a `LexicalSAE` like any other: predict, explain, measure or save it. `original` is as
    it was, so leaving the view is all it takes to restore.
    """

    original: LexicalSAE
    removal: Removal
    view: LexicalSAE = field(init=False)

    def __post_init__(self) -> None:
        view = without_words(self.original, self.coordinates, self.removal.unread)
        object.__setattr__(self, "view", view)

    @property
    def selection(self) -> WordSelection:
        return self.removal.selection

    @property
    def coordinates(self) -> tuple[int, ...]:
        return self.removal.coordinates

    def restore(self) -> LexicalSAE:
        return self.original


def suppress_words(
    model: LexicalSAE,
    words: Iterable[str] = (),
    *,
    patterns: Iterable[str] = (),
    exact: bool = False,
    how: str = "cut",
) -> SuppressedModel:
    """The model without these words and their other forms; see `removal_of`."""
    return SuppressedModel(model, _removal(model, words, patterns, exact, how))


def suppress_token_globally(
    model: LexicalSAE,
    words: Iterable[str] = (),
    *,
    patterns: Iterable[str] = (),
    exact: bool = False,
    how: str = "cut",
) -> WordSelection:
    """Remove the words from the model itself; `save_pretrained` keeps that, `model.restore()`
    undoes it."""
    removal = _removal(model, words, patterns, exact, how)
    refuse_emptying(model, removal.coordinates)
    model.leave_unread(removal.unread)
    model.suppress(removal.coordinates)
    return removal.selection


def _removal(
    model: LexicalSAE, words: Iterable[str], patterns: Iterable[str], exact: bool, how: str
) -> Removal:
    if model.dictionary is None:
        raise ValueError("This model has no tokenizer, so its words have no names.")
    return removal_of(model.dictionary, words, patterns=patterns, exact=exact, how=how)


def without_words(
    model: LexicalSAE, coordinates: Iterable[int], unread: Iterable[str] = ()
) -> LexicalSAE:
    """A model of its own that shares every weight and buffer with `model` but the mask."""
    gone = tuple(coordinates)
    refuse_emptying(model, gone)
    view, lexical = copy.copy(model), copy.copy(model.lexical)
    lexical._buffers = {**model.lexical._buffers, "keep": model.lexical.keep.clone()}
    view._modules = {**model._modules, "lexical": lexical}
    view.suppress(gone)
    view.leave_unread(unread)
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
