"""Curves of removal: what is left of a decision as its features go, best and worst case included.

A game is a function from masks [m, n] (true: the feature stays) to the probability [m] of the
decided label. It may be the head on its open words, or a whole model on the words of a text.

AOPC over an order of the n features is the mean of f(all) − f(without the first i) over i = 1 … n.
It depends on the model as much as on the order, so NAOPC (Edin et al., arXiv 2408.08137) puts it
between the least and the largest AOPC that any order reaches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Masks = NDArray[np.bool_]
Game = Callable[[Masks], Floats]

FRACTIONS = (0.01, 0.05, 0.1, 0.2, 0.5)  # ERASER's bins
EXACT_FEATURES = 10  # up to which every subset is tried
BEAM = 5


def removal_masks(order: Sequence[int] | NDArray[np.int64], n: int) -> Masks:
    """[n + 1, n]: row i lacks the first i features of the order."""
    place = np.empty(n, dtype=np.int64)
    place[np.asarray(order, dtype=np.int64)] = np.arange(n)
    return place[None, :] >= np.arange(n + 1)[:, None]


@dataclass(frozen=True, eq=False)
class Removal:
    """f after the first i features are gone, and with only the first i left, for i = 0 … n."""

    without: Floats  # [n + 1]
    only: Floats  # [n + 1]

    @property
    def n(self) -> int:
        return len(self.without) - 1

    @property
    def aopc(self) -> float:
        return float(self.without[0] - self.without[1:].mean())

    @property
    def reversed_aopc(self) -> float:
        """Of the reversed order: the smaller, the better the first features suffice."""
        return float(self.only[-1] - self.only[:-1].mean())

    def comprehensiveness(self, fraction: float) -> float:
        return float(self.without[0] - self.without[top_count(self.n, fraction)])

    def sufficiency(self, fraction: float) -> float:
        return float(self.only[-1] - self.only[top_count(self.n, fraction)])


def top_count(n: int, fraction: float) -> int:
    """⌈fraction · n⌉, at least one feature."""
    return min(n, max(1, int(np.ceil(fraction * n - 1e-9))))


def removal(game: Game, order: Sequence[int] | NDArray[np.int64]) -> Removal:
    """Both curves of an order that names every feature once."""
    n = len(order)
    if n == 0:
        raise ValueError("There is no feature to remove; expected at least one.")
    without = removal_masks(order, n)
    only = ~without
    found = game(np.concatenate([without, only]))
    return Removal(found[: n + 1], found[n + 1 :])


def falling(scores: Floats) -> NDArray[np.int64]:
    """The order from the largest score down; ties by place."""
    return np.argsort(-scores, kind="stable")


@dataclass(frozen=True)
class Limits:
    """The least and the largest AOPC of any order; `exact` if every order was weighed."""

    low: float
    high: float
    exact: bool

    def normalised(self, aopc: float) -> float | None:
        """NAOPC in [0, 1]; None where every order gives the same, so that none is better. A beam's
        limits are no bounds, so what goes beyond them counts as the limit."""
        if self.high - self.low <= 1e-12:
            return None
        return float(np.clip((aopc - self.low) / (self.high - self.low), 0.0, 1.0))


def limits(game: Game, n: int, *, beam: int = BEAM, exact_features: int = EXACT_FEATURES) -> Limits:
    """By all subsets where there are few features, else by a beam search in both directions."""
    everything = float(game(np.ones((1, n), dtype=np.bool_))[0])
    if n <= exact_features:
        low, high = _exact_sums(game, n)
        exact = True
    else:
        low, high = (_beam_sum(game, n, beam, sign) for sign in (1.0, -1.0))
        exact = False
    # the sum of f along the way is least where AOPC is largest
    return Limits(everything - high / n, everything - low / n, exact)


class Remembered:
    """A game whose values are kept: the searches for both limits meet in many sets of features."""

    def __init__(self, game: Game) -> None:
        self.game = game
        self.known: dict[bytes, float] = {}

    def __call__(self, masks: Masks) -> Floats:
        keys = [key.tobytes() for key in np.packbits(masks, axis=1)]
        new = {key: row for row, key in enumerate(keys) if key not in self.known}
        if new:
            values = self.game(masks[list(new.values())])
            self.known.update(zip(new, map(float, values), strict=True))
        return np.array([self.known[key] for key in keys])


def limits_tried(curves: Sequence[Removal]) -> Limits:
    """The least and the largest AOPC of some orders and of their reverses."""
    found = [aopc for curve in curves for aopc in (curve.aopc, curve.reversed_aopc)]
    return Limits(min(found), max(found), exact=False)


def _exact_sums(game: Game, n: int) -> tuple[float, float]:
    """The least and the largest Σ f along any way from all features to none, over all subsets."""
    number = np.arange(2**n)
    masks = (number[:, None] >> np.arange(n)[None, :]) & 1 > 0  # [2ⁿ, n]
    value = game(masks)
    least = np.full(2**n, np.inf)
    largest = np.full(2**n, -np.inf)
    least[-1] = largest[-1] = 0.0  # the start, all features, is not counted
    # by falling size: every subset with one feature more is done before it
    for subset in sorted(range(2**n - 1), key=lambda s: -bin(s).count("1")):
        before = [subset | (1 << j) for j in range(n) if not subset >> j & 1]
        least[subset] = value[subset] + least[before].min()
        largest[subset] = value[subset] + largest[before].max()
    return float(least[0]), float(largest[0])


def _beam_sum(game: Game, n: int, beam: int, sign: float) -> float:
    """The least (sign 1) or largest (sign −1) Σ f that a beam search finds."""
    masks = np.ones((1, n), dtype=np.bool_)
    total = np.zeros(1)
    for _ in range(n):
        parent, feature = np.nonzero(masks)  # every feature that is left, of every mask
        children = masks[parent].copy()
        children[np.arange(len(children)), feature] = False
        # the same set reached twice: its value is one, the better way to it counts
        packed = np.packbits(children, axis=1)
        order = np.argsort(sign * total[parent], kind="stable")
        _, first = np.unique(packed[order], axis=0, return_index=True)
        chosen = order[first]
        children, reached = children[chosen], total[parent[chosen]] + game(children[chosen])
        best = np.argsort(sign * reached, kind="stable")[:beam]
        masks, total = children[best], reached[best]
    return float(total[0])
