"""Needles found above filler, while the filler texts that set the correction are drawn anew.

The mean logits of some forty filler texts are taken off every logit, so all needles hang on which
texts these were. An interval over needles alone would take them as exact.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lexical_sae.evaluation.bootstrap import CHUNK, RESAMPLES
from lexical_sae.studies.long_context_reading import Decisions, Floats
from lexical_sae.studies.needles import Haystack


def right_above(
    found: Decisions, filler: Decisions, arm: str, hay: Sequence[Haystack], seed: int
) -> Floats:
    """[resamples, needles]: share of the places at which each needle is found, each time with as
    many filler texts drawn with replacement. The same seed draws the same texts for every arm."""
    logits, means = found.logits[arm], drawn_means(filler.logits[arm], seed)
    labels = np.array([one.label for one in hay])
    share = _by_needle(hay)
    at_once = max(1, CHUNK // logits.size)
    parts = []
    for start in range(0, len(means), at_once):
        above = logits[None] - means[start : start + at_once, None]
        parts.append((above.argmax(-1) == labels).astype(np.float64) @ share)
    return np.concatenate(parts)


def drawn_means(logits: Floats, seed: int) -> Floats:
    """[resamples, C]: means of `logits` [texts, C] over texts drawn with replacement."""
    # another stream than that of the needles, which are drawn independently
    draw, n = np.random.default_rng([seed, 1]), len(logits)
    times = [np.bincount(row, minlength=n) for row in draw.integers(0, n, (RESAMPLES, n))]
    means: Floats = np.array(times) @ logits / n
    return means


def _by_needle(hay: Sequence[Haystack]) -> Floats:
    """[texts, needles]: what takes values of texts to the mean over the places of each needle."""
    _, column, count = np.unique(
        [one.needle for one in hay], return_inverse=True, return_counts=True
    )
    share = np.zeros((len(hay), len(count)))
    share[np.arange(len(hay)), column] = 1 / count[column]
    return share
