"""Step 11, first part: do the probabilities mean what they say?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lexical_sae.evaluation.perturbation import Floats

BINS = 15


@dataclass(frozen=True)
class ConfidenceBin:
    """The decisions whose probability falls between two bounds."""

    low: float
    high: float
    count: int
    confidence: float  # mean probability of the decided label
    accuracy: float


def confidence_bins(
    confidence: Floats, right: NDArray[np.bool_], bins: int = BINS
) -> list[ConfidenceBin]:
    """Bins of equal width over [0, 1]; empty ones are left out. A bin holds its upper end."""
    place = np.clip(np.ceil(confidence * bins) - 1, 0, bins - 1).astype(int)
    found = []
    for index in range(bins):
        here = place == index
        if here.any():
            found.append(
                ConfidenceBin(
                    index / bins,
                    (index + 1) / bins,
                    int(here.sum()),
                    float(confidence[here].mean()),
                    float(right[here].mean()),
                )
            )
    return found


def expected_calibration_error(bins: list[ConfidenceBin]) -> float:
    """Mean |confidence − accuracy| over the bins, weighted by their decisions."""
    total = sum(part.count for part in bins)
    if not total:
        raise ValueError("There are no decisions to calibrate; expected at least one.")
    return sum(part.count * abs(part.confidence - part.accuracy) for part in bins) / total
