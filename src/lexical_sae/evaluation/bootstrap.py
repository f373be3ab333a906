"""Intervals and paired tests by resampling texts, and seeds where there are several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lexical_sae.report.finding import Estimate

Floats = NDArray[np.float64]
RESAMPLES, LEVEL = 2000, 0.95
ENDS = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)  # of an interval, as quantiles
CERTAIN = 0.05  # p below which a difference is not called chance
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
    low, high = np.quantile(means, ENDS)
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
    low, high = np.nanquantile(found, ENDS)
    return Estimate(float(parts.sum() / wholes.sum()), float(low), float(high))


def drawn_estimate(value: float, draws: Floats, seed: int = 0) -> Estimate:
    """`value` with its 95 % interval where all rows hang on one more thing that was drawn: `draws`
    [resamples, n] are the values of n rows, each time with another draw of that thing. The rows are
    drawn with replacement beside it."""
    draw, n = np.random.default_rng(seed), draws.shape[1]
    means = [row[draw.integers(0, n, n)].mean() for row in draws]
    low, high = np.quantile(means, ENDS)
    return Estimate(value, float(low), float(high))


def runs_estimate(runs: Floats, wholes: Floats | None = None, seed: int = 0) -> Estimate:
    """The mean of `runs` [seeds, rows] with its 95 % interval; with `wholes` [rows], such as the
    tags of each sentence, Σ runs / Σ wholes of the mean over seeds.

    With several seeds these and the rows are both drawn with replacement: other seeds would have
    given other numbers, just as other rows would. All seeds were measured on the same rows, so the
    rows of a draw are the same for all of its seeds. Of one seed nothing is known but its rows.
    """
    seeds, n = runs.shape
    if seeds == 1:
        return (
            mean_estimate(runs[0], seed)
            if wholes is None
            else ratio_estimate(runs[0], wholes, seed)
        )
    whole = np.ones(n) if wholes is None else wholes
    if not whole.sum():
        return Estimate(None, why="there is nothing to count")
    draw, found = np.random.default_rng(seed), []
    for _ in range(RESAMPLES):
        chosen = np.bincount(draw.integers(0, seeds, seeds), minlength=seeds)
        times = np.bincount(draw.integers(0, n, n), minlength=n)
        among = seeds * float(times @ whole)
        found.append(float(chosen @ (runs @ times)) / among if among else float("nan"))
    low, high = np.nanquantile(found, ENDS)
    return Estimate(float(runs.sum() / (seeds * whole.sum())), float(low), float(high))


def may_be_chance(low: float, high: float, p: float) -> bool:
    """A difference is shown only by both: an interval without 0, and the test."""
    return low <= 0 <= high or p >= CERTAIN


@dataclass(frozen=True)
class Difference:
    """Of two things that were measured on the same rows, with the same seeds. The interval is over
    both; p asks of the rows alone whether signs given at random would do as much."""

    value: float
    low: float
    high: float
    p: float
    seeds: int

    @property
    def may_be_chance(self) -> bool:
        return may_be_chance(self.low, self.high, self.p)


def runs_difference(
    first: Floats, second: Floats, wholes: Floats | None = None, seed: int = 0
) -> Difference | None:
    """`first` minus `second`, each [seeds, rows], paired by seed and by row; `wholes` as
    `runs_estimate` takes them. None where there is nothing to pair."""
    if first.shape != second.shape or not first.size:
        return None
    found = runs_estimate(first - second, wholes, seed)
    if found.value is None or found.low is None or found.high is None:
        return None
    p = paired_p_value(first.mean(0), second.mean(0))
    return Difference(found.value, found.low, found.high, p, len(first))


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
