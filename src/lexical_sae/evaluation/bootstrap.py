"""Intervals and paired tests by resampling texts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lexical_sae.report.finding import Estimate

Floats = NDArray[np.float64]
RESAMPLES, LEVEL = 2000, 0.95
CHUNK = 2**22  # entries of the table of resampled rows that are held at once


def resampled_means(values: Floats, seed: int, resamples: int = RESAMPLES) -> Floats:
    """[resamples]: means of `values` [n] over n rows drawn with replacement."""
    draw, n = np.random.default_rng(seed), len(values)
    at_once = max(1, CHUNK // n)
    means = [
        values[draw.integers(0, n, (min(at_once, resamples - start), n))].mean(1)
        for start in range(0, resamples, at_once)
    ]
    return np.concatenate(means)


def mean_estimate(values: Sequence[float] | Floats, seed: int = 0) -> Estimate:
    """The mean with its 95 % interval; undefined if there is nothing to average."""
    found = np.asarray(values, dtype=np.float64)
    if not len(found):
        return Estimate(None, why="there is no text for it")
    means = resampled_means(found, seed)
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Estimate(float(found.mean()), float(low), float(high))


def ratio_estimate(parts: Floats, wholes: Floats, seed: int = 0) -> Estimate:
    """Σ parts / Σ wholes, each [n], with its 95 % interval over rows drawn with replacement."""
    if not wholes.sum():
        return Estimate(None, why="there is nothing to count")
    draw, n = np.random.default_rng(seed), len(parts)
    found: list[float] = []
    for _ in range(RESAMPLES):
        times = np.bincount(draw.integers(0, n, n), minlength=n)
        whole = float(times @ wholes)
        found.append(float(times @ parts) / whole if whole else float("nan"))
    low, high = np.nanquantile(found, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Estimate(float(parts.sum() / wholes.sum()), float(low), float(high))


def paired_p_value(first: Sequence[float] | Floats, second: Sequence[float] | Floats) -> float:
    """How often signs given at random to the differences of pairs move their mean as far from zero:
    a two-sided sign-flip test."""
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if a.shape != b.shape:
        raise ValueError(f"There are {len(a)} and {len(b)} values; expected pairs.")
    difference = a - b
    if not len(difference) or not np.any(difference):
        return 1.0
    draw, n = np.random.default_rng(0), len(difference)
    at_once = max(1, CHUNK // (4 * n))  # drawn signs are held beside themselves as floats
    far, moved = abs(float(difference.sum())) - 1e-12, 0
    for start in range(0, RESAMPLES, at_once):
        flipped = draw.integers(0, 2, (min(at_once, RESAMPLES - start), n))
        moved += int((np.abs((flipped * 2.0 - 1.0) @ difference) >= far).sum())
    return float((1 + moved) / (1 + RESAMPLES))
