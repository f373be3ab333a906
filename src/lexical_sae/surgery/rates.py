"""Counts and ranks under weights: a bootstrap is then a matrix product and not a loop of sorts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Weights = NDArray[np.float32]  # whole numbers; every sum of rows that fits into memory is exact
Bools = NDArray[np.bool_]
Frames = NDArray[np.int64]  # 0, 1, …: rows with the same number belong together


def bootstrap_weights(rows: int, draws: int, seed: int, frames: Frames | None = None) -> Weights:
    """[1 + draws, rows]: once each, for the data itself; then how often each row is drawn, with
    replacement, as many times as there are rows. Rows of the same frame [rows] are drawn together:
    fifty texts that differ in one word are not fifty witnesses."""
    draw = np.random.default_rng(seed)
    unit = np.arange(rows) if frames is None else frames
    units = int(unit.max()) + 1
    found = np.ones((1 + draws, rows), dtype=np.float32)
    for times in found[1:]:
        times[:] = np.bincount(draw.integers(0, units, units), minlength=units)[unit]
    return found


def share(hits: Bools, among: Bools, weights: Weights) -> Floats:
    """[draws]: the weighted share of `hits` [N] in the rows `among` [N]; nan if there are none."""
    whole = weights @ among.astype(np.float32)
    part = weights @ (hits & among).astype(np.float32)
    return divided(part, whole)


def auc(scores: Floats, positive: Bools, weights: Weights) -> Floats:
    """[draws]: how often a positive row scores above a negative one, ties counting half, with every
    row counted by its weight; nan without rows of both kinds."""
    if not len(scores):
        return np.full(len(weights), np.nan)
    order = np.argsort(scores, kind="stable")
    level = np.cumsum(np.concatenate([[0], np.diff(scores[order]) > 0]))  # [N] equal scores share
    starts = np.flatnonzero(np.concatenate([[1], np.diff(level)]))
    counted = weights[:, order].astype(np.float64)
    up = np.add.reduceat(counted * positive[order], starts, axis=1)  # [draws, levels]
    down = np.add.reduceat(counted * ~positive[order], starts, axis=1)
    below = np.cumsum(down, axis=1) - down
    wins = (up * (below + 0.5 * down)).sum(1)
    return divided(wins, up.sum(1) * down.sum(1))


def divided(parts: NDArray[Any], wholes: NDArray[Any]) -> Floats:
    """Element by element; nan where the whole is 0."""
    found = np.full(len(wholes), np.nan)
    np.divide(parts, wholes, out=found, where=wholes > 0)
    return found
