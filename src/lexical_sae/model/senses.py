"""Senses: several coordinates for one word, told apart at each position by the hidden state.

An expanded word has M coordinates: the first is the word's own, the others stand at the end of the
dictionary. All share its lexical logit z (one decoder row, one bias); each has a threshold and a
row in the head of its own. At a position the whole logit goes to the sense with the largest
R[k, m]·h + r[k, m], and the word's other senses are closed there. The choice is hard, so the open
words and the sum over them are as exact as without senses; in training its gradient is that of
softmax-weighted values (straight through).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from lexical_sae.model.open_words import OpenWords, Routes, one_source_each
from lexical_sae.model.pair_logits import pair_logits


class SenseRouter(nn.Module):
    """Which K words have M senses, and the linear map that chooses among them."""

    words: Tensor

    def __init__(self, words: Sequence[int], senses: int, plain_words: int, size: int) -> None:
        super().__init__()
        self.senses = senses  # M
        self.plain_words = plain_words  # V₀: the dictionary without further senses
        self.weight = nn.Parameter(torch.empty(len(words) * senses, size))  # R [K·M, H]
        self.bias = nn.Parameter(torch.empty(len(words) * senses))  # r [K·M]
        self.register_buffer("words", torch.tensor(list(words), dtype=torch.long))  # [K]

    def reset(self) -> None:
        nn.init.normal_(self.weight, std=0.02)
        nn.init.zeros_(self.bias)

    def coordinates(self) -> Tensor:
        """[K, M]: the coordinate of every sense."""
        return sense_coordinates(self.words, self.senses, self.plain_words)

    def word_of(self, coordinate: Tensor) -> Tensor:
        """The word that each coordinate is, or is a sense of."""
        further = (coordinate - self.plain_words).clamp(min=0)
        owner = self.words[torch.div(further, self.senses - 1, rounding_mode="floor")]
        return torch.where(coordinate < self.plain_words, coordinate, owner)

    def scores(self, h: Tensor, position: Tensor, expanded: Tensor) -> Tensor:
        """[Q, M] at the pairs (row of h [N, H], expanded word 0 … K − 1), each [Q].

        Pair by pair: a tie that rounding breaks is broken alike in every batch.
        """
        several = torch.arange(self.senses, device=h.device)
        which = (expanded[:, None] * self.senses + several).flatten()
        where = position.repeat_interleave(self.senses)
        return pair_logits(h, self.weight, self.bias, where, which).view(-1, self.senses)


def sense_coordinates(words: Tensor, senses: int, plain_words: int) -> Tensor:
    """[K, M]: the words' own coordinates [K], then those at the end of the dictionary."""
    further = torch.arange(len(words) * (senses - 1), device=words.device) + plain_words
    return torch.cat([words[:, None], further.view(len(words), senses - 1)], dim=1)


def straight_through(value: Tensor, scores: Tensor) -> Tensor:
    """[Q, M] from the gated values and routing scores of all senses, both [Q, M].

    Forward: the chosen sense's value, 0 for the others, to the bit. Backward: into the values as
    chosen, into the scores as if every sense had softmax(scores) of its value.
    """
    soft = torch.softmax(scores, dim=-1)
    return value * one_chosen(scores) + value.detach() * (soft - soft.detach())


def one_chosen(scores: Tensor) -> Tensor:
    """[Q, M] bool: true at the largest score of each row, the first of equals."""
    several = torch.arange(scores.shape[-1], device=scores.device)
    return scores.argmax(-1, keepdim=True) == several


@dataclass(frozen=True, eq=False)
class SensePairs:
    """(position, sense) pairs that are open, or that training keeps for their gradient."""

    source: Tensor  # [P] packed position, ascending
    coordinate: Tensor  # [P]
    value: Tensor  # [P]
    logit: Tensor  # [P] z; −inf where the logit went to another sense
    soft_value: Tensor  # [P] softmax · gated value
    routes: Routes


def sense_pairs(
    source: Tensor,
    expanded: Tensor,
    z: Tensor,
    scores: Tensor,
    value: Tensor,
    coordinate: Tensor,
    open_from: Tensor,
    *,
    training: bool,
) -> SensePairs:
    """Candidates to pairs: source, expanded word and z are [Q]; scores, gated values, coordinates
    and what z must exceed in each sense (inf: suppressed) are [Q, M].

    Suppressing a sense closes the word where it is meant in that sense; the logit does not go over
    to another one. In training the senses that were not chosen stay as pairs of value 0, so that
    the head's gradient at them can move the choice.
    """
    chosen = one_chosen(scores)
    soft = torch.softmax(scores, dim=-1)
    live = chosen & (z[:, None] > open_from)
    if training:
        routed = straight_through(value, scores)
        live = live | (~chosen & (value.detach() > 0) & torch.isfinite(open_from))
    else:
        routed = value * chosen
    pair, sense = live.nonzero(as_tuple=True)
    closed = z.new_full((), -torch.inf)
    is_open = (live & (routed.detach() > 0)).any(1)
    return SensePairs(
        source[pair],
        coordinate[pair, sense],
        routed[pair, sense],
        torch.where(chosen[pair, sense], z[pair], closed),
        (soft * value).detach()[pair, sense],
        Routes(expanded[is_open], soft[is_open]),
    )


def pool_senses(pairs: SensePairs, row: Tensor, size: int) -> Tensor:
    """[P']: for each (document, sense) the pair that counts, in their order; row [P] is the
    document of each pair.

    The largest value, as for any word, and of equals the first. If all are closed: the largest
    logit within the gate's window, or else the position at which the sense was nearest to being
    chosen, so that a sense that is chosen nowhere can still be asked for.
    """
    logit, value = pairs.logit.detach(), pairs.value.detach()
    nothing = torch.zeros_like(value)
    asked = torch.where(torch.isfinite(logit), nothing, pairs.soft_value)
    order = torch.argsort(asked, descending=True, stable=True)
    for rank in (torch.where(value > 0, nothing, logit), value):
        order = order[torch.argsort(rank[order], descending=True, stable=True)]
    key = row * size + pairs.coordinate
    order = order[torch.argsort(key[order], stable=True)]
    first = torch.ones_like(order, dtype=torch.bool)
    first[1:] = key[order][1:] != key[order][:-1]
    return order[first]


def merged(found: OpenWords, other: OpenWords, routes: Routes) -> OpenWords:
    """The pairs of both, sorted; each has one source."""
    key = torch.cat([o.row * o.dictionary_size + o.word for o in (found, other)])
    order = torch.argsort(key)  # no key is in both

    def both(name: str) -> Tensor:
        return torch.cat([getattr(found, name), getattr(other, name)])[order]

    return one_source_each(
        both("row"),
        both("word"),
        both("value"),
        torch.cat([found.sources.logit, other.sources.logit])[order],
        both("position"),
        shape=found.shape,
        dictionary_size=found.dictionary_size,
        routes=routes,
    )
