"""Checking a certificate in exact integer arithmetic, by code that the search does not use.

A float is an integer times a power of two, so the head's numbers, the open words' values and the
certificate's slopes are all taken as they are: nothing here rounds. For every rival the check
forms the linear bound that the slopes define and takes its least value over the box.
"""

from __future__ import annotations

from fractions import Fraction
from math import isfinite

import torch

from lexical_sae.certify.sufficient import SufficientReason
from lexical_sae.model.heads import LinearHead, MLPHead
from lexical_sae.model.state import CircuitState


def check_sufficient_reason(state: CircuitState, row: int, reason: SufficientReason) -> bool:
    """Whether `reason` proves that its words decide row `row` of `state`.

    True only if the exact bound on every margin is above what single precision can round away, and
    no claimed margin is above its exact bound (but for the rounding of the search, in fp64).
    """
    if not (0 <= row < state.open_words.rows and 0 <= reason.winner < state.head.classes):
        return False
    begin, end = (int(i) for i in state.open_words.offsets[row : row + 2])
    values = [_exact(v) for v in state.open_words.value[begin:end].tolist()]
    words = [int(w) for w in state.open_words.word[begin:end].tolist()]
    stays = set(reason.coordinates)
    if not stays <= {w for w, value in zip(words, values, strict=True) if value > 0}:
        return False  # it names a word that is not open here
    into, inner, out, direct, bias = _head_numbers(state.head, words)
    rivals = [c for c in range(state.head.classes) if c != reason.winner]
    if reason.slopes.shape != (len(rivals), len(inner)) or len(reason.margin) != len(rivals):
        return False
    if not all(map(isfinite, (*reason.slopes.ravel().tolist(), *reason.margin))):
        return False
    slopes = [[_exact(a) for a in line] for line in reason.slopes.tolist()]
    if any(not 0 <= a <= 1 for line in slopes for a in line):
        return False
    # range of every hidden unit, and its value with only the words that stay
    fixed, low, high = list(inner), list(inner), list(inner)
    for weights, value, word in zip(into, values, words, strict=True):
        for k, weight in enumerate(weights):
            part = value * weight
            if word in stays:
                fixed[k] += part
                low[k] += part
                high[k] += part
            elif part < 0:
                low[k] += part
            else:
                high[k] += part
    allowance = _rounding_allowance(into, inner, out, direct, bias, values)
    for rival, line, claimed in zip(rivals, slopes, reason.margin, strict=True):
        difference = [a - b for a, b in zip(out[reason.winner], out[rival], strict=True)]
        total = bias[reason.winner] - bias[rival]
        for k, (d, a) in enumerate(zip(difference, line, strict=True)):
            total += d * a * fixed[k]
            if d < 0:
                total += d * max(-a * low[k], (1 - a) * high[k])
        through = [d * a for d, a in zip(difference, line, strict=True)]
        for weights, value, word, straight in zip(into, values, words, direct, strict=True):
            own = value * (straight[reason.winner] - straight[rival])
            if word in stays:
                total += own  # its way through the hidden units is in `fixed`
                continue
            own += value * sum((t * w for t, w in zip(through, weights, strict=True)), Fraction(0))
            total += min(own, Fraction(0))
        if not total > allowance or _exact(claimed) > total + allowance / 2**20:
            return False
    return True


Numbers = list[list[Fraction]]


def _head_numbers(
    head: torch.nn.Module, words: list[int]
) -> tuple[Numbers, list[Fraction], Numbers, Numbers, list[Fraction]]:
    """(words × hidden, hidden biases, classes × hidden, words × classes, biases)."""
    if isinstance(head, MLPHead):
        width = head.W1.shape[1]
        inner = head.b1.tolist() if head.b1 is not None else [0.0] * width
        nothing = [[Fraction(0)] * head.classes for _ in words]
        return (
            _table(head.W1[words].tolist()),
            [_exact(b) for b in inner],
            _table(head.W2.tolist()),
            nothing,
            [_exact(b) for b in head.b2.tolist()],
        )
    if isinstance(head, LinearHead):
        empty: Numbers = [[] for _ in range(head.classes)]
        straight = _table(head.weight[words].tolist())
        return [[] for _ in words], [], empty, straight, [_exact(b) for b in head.bias.tolist()]
    raise ValueError(f"{type(head).__name__} cannot be checked; expected an MLP or linear head.")


def _rounding_allowance(
    into: Numbers,
    inner: list[Fraction],
    out: Numbers,
    direct: Numbers,
    bias: list[Fraction],
    values: list[Fraction],
) -> Fraction:
    """More than single precision can be off in any logit: every sum's length times its size."""
    reach = [abs(b) for b in inner]
    for weights, value in zip(into, values, strict=True):
        for k, weight in enumerate(weights):
            reach[k] += abs(value * weight)
    largest = Fraction(0)
    for c, line in enumerate(out):
        size = abs(bias[c]) + sum(
            (abs(w) * r for w, r in zip(line, reach, strict=True)), Fraction()
        )
        size += sum((abs(v * d[c]) for v, d in zip(values, direct, strict=True)), Fraction())
        largest = max(largest, size)
    # the search demands 32 steps more, since its own sums round too
    steps = len(values) + len(inner) + 32
    return largest * steps * Fraction(1, 2**23)


def _table(rows: list[list[float]]) -> Numbers:
    return [[_exact(number) for number in line] for line in rows]


def _exact(number: float) -> Fraction:
    return Fraction(number)
