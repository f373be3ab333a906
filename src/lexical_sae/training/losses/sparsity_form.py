"""The sparsity term in the form that the settings name."""

from __future__ import annotations

from torch import Tensor

from lexical_sae.model.gate import nonnegative_threshold
from lexical_sae.model.lexical_layer import LexicalLayer
from lexical_sae.model.open_words import OpenWords
from lexical_sae.training.losses.frequencies import OpenRates
from lexical_sae.training.losses.sparsity import df_flops, gate_sparsity, l1_l0
from lexical_sae.training.losses.target import target_l0, target_l1

TARGETED = ("target_l0", "target_l1")  # they know how many words are wanted, and stop there


def sparsity_term(
    open_words: OpenWords,
    lexical: LexicalLayer,
    form: str,
    number: float,
    aim: float,
    rates: OpenRates | None,
) -> Tensor:
    """`number` of words are open per decision, `aim` are wanted; `rates` are for df_flops."""
    if form == "l1_l0":
        return l1_l0(open_words)
    if form == "df_flops":
        assert rates is not None
        return df_flops(open_words, rates.rate)
    theta = nonnegative_threshold(lexical.threshold)
    if form == "gate":
        return gate_sparsity(open_words, theta, lexical.width)
    if form == "target_l0":
        return target_l0(open_words, theta, lexical.width, number, aim)
    return target_l1(open_words, number, aim)
