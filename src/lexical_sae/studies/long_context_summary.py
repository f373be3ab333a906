"""What came out of a long-context study, in sentences; what did not hold is said as plainly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lexical_sae.report.finding import Estimate
from lexical_sae.report.shown import percent
from lexical_sae.studies.long_context_findings import Measured
from lexical_sae.studies.long_context_reading import (
    ARMS,
    CUT,
    TWIN_MAX,
    TWIN_MEAN,
    WHOLE,
    Decisions,
)
from lexical_sae.studies.repeated import Numbers, Summed


def summary(
    found: Sequence[Measured],
    hay: Mapping[int, Decisions],
    labels: Sequence[str],
    seed: int,
    max_tokens: int,
) -> list[str]:
    bare, longest = found[0], found[-1]
    start = ", ".join(f"{arm} {_percent(bare.accuracy(arm, seed))}" for arm in (WHOLE, TWIN_MEAN))
    end = ", ".join(f"{arm} {_percent(longest.accuracy(arm, seed))}" for arm in ARMS)
    told = longest.estimates(seed)
    said = hay[longest.length]
    above = ", ".join(f"{arm} {_percent(longest.above_filler(arm, seed))}" for arm in ARMS)
    return [
        f"Both models read {max_tokens} tokens at once. Needles alone: {start}.",
        f"In {longest.length:,} words: {end}.",
        f"The same, with what filler alone gives each class taken off: {above}.",
        *(_compared(longest, WHOLE, other, seed) for other in (CUT, TWIN_MEAN, TWIN_MAX)),
        f"In {longest.length:,} words the needle is {_percent(told['needle_words'])} of the words "
        f"and gives {_percent(told['needle_share'])} of the evidence; the strongest word is its "
        f"own in {_percent(told['top_in_needle'])}. Open words: "
        f"{bare.estimates(seed)['open_words'].value or 0:.0f} for a needle alone, "
        f"{told['open_words'].value or 0:.0f} then.",
        f"Filler alone, {longest.length:,} words: "
        + "; ".join(
            f"{arm} says {_rates(said.predicted(arm), labels)}" for arm in (WHOLE, TWIN_MEAN)
        )
        + ".",
    ]


def _compared(one: Measured, ours: str, other: str, seed: int) -> str:
    plain = _apart(one.ahead(ours, other, seed))
    above = _apart(one.ahead(ours, other, seed, one.filler))
    return f"{ours} against {other}, {one.length:,} words: {plain}; above filler {above}."


def _apart(found: Estimate) -> str:
    value, low, high = (100 * (v or 0.0) for v in (found.value, found.low, found.high))
    verdict = "ahead" if low > 0 else "behind" if high < 0 else "no difference is shown"
    return f"{value:+.1f} points ({low:+.1f} to {high:+.1f}), {verdict}"


def _rates(said: np.ndarray, labels: Sequence[str]) -> str:
    counts = np.bincount(said, minlength=len(labels))
    shares = [(100 * n / counts.sum(), name) for n, name in zip(counts, labels, strict=True) if n]
    return ", ".join(f"{name} {share:.0f} %" for share, name in sorted(shares, reverse=True))


def _percent(found: Estimate) -> str:
    if found.value is None:
        return f"undefined ({found.why})"
    value, low, high = (100 * (v or 0.0) for v in (found.value, found.low, found.high))
    return f"{value:.1f} % ({low:.1f} to {high:.1f})"


def _over_seeds(found: Mapping[str, Any]) -> Numbers:
    """Of results.json: both accuracies of every arm, by length."""
    return {
        (one["words"] or "needle alone", arm): {
            "accuracy, %": percent(accuracy["value"]),
            "above filler, %": percent(one["above_filler"][arm]["value"]),
        }
        for one in found["lengths"]
        for arm, accuracy in one["accuracy"].items()
    }


OVER_SEEDS = Summed(
    "Long context",
    ("words", "read by"),
    _over_seeds,
    lambda label: label[1] in (WHOLE, TWIN_MEAN),
)
