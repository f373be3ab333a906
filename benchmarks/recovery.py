"""How much of what was lost comes back: per trial, and over all trials together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lexical_sae.evaluation.bootstrap import LEVEL, RESAMPLES
from lexical_sae.report.finding import Estimate


def recovered(clean: float, spoilt: float, after: float) -> float | None:
    """The share of clean − spoilt that `after` has again; None where nothing was lost."""
    return (after - spoilt) / (clean - spoilt) if clean > spoilt else None


def pooled_recovery(
    clean: Sequence[float], spoilt: Sequence[float], after: Sequence[float], seed: int = 0
) -> Estimate:
    """Σ regained / Σ lost over trials, with an interval over trials drawn with replacement. One
    trial may lose next to nothing, and its own share is then noise; the sums are not."""
    lost = np.asarray(clean, dtype=np.float64) - np.asarray(spoilt, dtype=np.float64)
    regained = np.asarray(after, dtype=np.float64) - np.asarray(spoilt, dtype=np.float64)
    if not lost.sum() > 0:
        return Estimate(None, why="nothing was lost over all trials")
    value = float(regained.sum() / lost.sum())
    draw = np.random.default_rng(seed)
    drawn = draw.integers(0, len(lost), (RESAMPLES, len(lost)))
    wholes, parts = lost[drawn].sum(1), regained[drawn].sum(1)
    tail = (1 - LEVEL) / 2
    if (wholes <= 0).mean() > tail:  # the share has no bounds where the loss may be none at all
        return Estimate(
            value, why="the loss itself is not clear of 0, so its share has no interval"
        )
    kept = wholes > 0
    low, high = np.quantile(parts[kept] / wholes[kept], [tail, 1 - tail])
    return Estimate(value, float(low), float(high))
