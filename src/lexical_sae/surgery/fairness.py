"""How a classifier treats groups: error rates, gaps and AUCs of each, with intervals.

A gap is a group's rate minus that of all rows (Dixon et al. 2018: the mean of its absolute values
over the groups is their equality difference by the number of groups). The three AUCs are those of
Borkan et al. 2019: within the group; BPSN, background positives against the group's negatives,
which falls where the group's harmless rows score too high; BNSP the other way round.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from lexical_sae.report.finding import Estimate
from lexical_sae.surgery.rates import (
    Bools,
    Floats,
    Frames,
    Weights,
    auc,
    bootstrap_weights,
    divided,
    share,
)

DRAWS = 1000
AUC_DRAWS = 200  # each is a pass over sorted scores
FEWEST_ROWS = 30  # below that an interval is shown, and no verdict
LEVEL = 0.95


@dataclass(frozen=True)
class GroupBias:
    """One group. Rates are of its own rows, gaps against all rows."""

    name: str
    rows: int
    negatives: int
    verdict: str
    fpr: Estimate
    fnr: Estimate
    fpr_gap: Estimate
    fnr_gap: Estimate
    subgroup_auc: Estimate
    bpsn_auc: Estimate
    bnsp_auc: Estimate


@dataclass(frozen=True)
class BiasReport:
    accuracy: Estimate
    fpr: Estimate
    fnr: Estimate
    auc: Estimate
    mean_fpr_gap: Estimate  # mean |gap| over the groups
    mean_fnr_gap: Estimate
    worst_group: str | None  # that with the largest |FPR gap| among those large enough
    groups: tuple[GroupBias, ...]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def evaluate_bias(
    scores: Floats,
    positive: Bools,
    groups: Mapping[str, Bools],
    *,
    said: Bools | None = None,
    threshold: float = 0.5,
    frames: Frames | None = None,
    seed: int = 0,
) -> BiasReport:
    """scores [N] are probabilities of the positive class (for instance toxic), `positive` [N] the
    gold labels, `groups` the rows of each group (they may overlap). `said` [N]: which rows are
    flagged; by default those that score `threshold` or more. `frames` [N]: rows with the same
    number are resampled together. Groups with fewer than 30 negative rows have their own line, but
    no part in the mean gaps."""
    scores, positive = np.asarray(scores, dtype=np.float64), np.asarray(positive, dtype=bool)
    _check(scores, positive, groups)
    said = scores >= threshold if said is None else np.asarray(said, dtype=bool)
    negative = ~positive
    weights = bootstrap_weights(len(scores), DRAWS, seed, frames)
    few = weights[: 1 + AUC_DRAWS]
    every = np.ones(len(scores), dtype=bool)
    fpr, fnr = share(said, negative, weights), share(~said, positive, weights)
    found, fpr_gaps, fnr_gaps = [], [], []
    for name, rows in groups.items():
        rows = np.asarray(rows, dtype=bool)
        rate = {
            "fpr": share(said, rows & negative, weights),
            "fnr": share(~said, rows & positive, weights),
        }
        gap = {"fpr_gap": rate["fpr"] - fpr, "fnr_gap": rate["fnr"] - fnr}
        aucs = {
            "subgroup_auc": rows,
            "bpsn_auc": (rows & negative) | (~rows & positive),
            "bnsp_auc": (rows & positive) | (~rows & negative),
        }
        shown = {key: estimate(values) for key, values in {**rate, **gap}.items()}
        shown |= {
            key: estimate(auc(scores[part], positive[part], few[:, part]))
            for key, part in aucs.items()
        }
        count, negatives = int(rows.sum()), int((rows & negative).sum())
        verdict = _verdict(count, negatives, shown["fpr_gap"])
        found.append(GroupBias(name, count, negatives, verdict, **shown))
        if negatives >= FEWEST_ROWS:
            fpr_gaps.append(np.abs(gap["fpr_gap"]))
        if count - negatives >= FEWEST_ROWS:
            fnr_gaps.append(np.abs(gap["fnr_gap"]))
    return BiasReport(
        accuracy=estimate(share(said == positive, every, weights)),
        fpr=estimate(fpr),
        fnr=estimate(fnr),
        auc=estimate(auc(scores, positive, few)),
        mean_fpr_gap=size_estimate(_mean_known(fpr_gaps)),
        mean_fnr_gap=size_estimate(_mean_known(fnr_gaps)),
        worst_group=_worst(found),
        groups=tuple(found),
    )


def mean_fpr_gap(said: Bools, positive: Bools, groups: Mapping[str, Bools]) -> float:
    """The mean |FPR gap| alone; what the search for a cut keeps as it goes, counted anew."""
    itself = bootstrap_weights(len(said), 0, 0)
    return float(mean_fpr_gaps(said, positive, groups, itself)[0])


def mean_fpr_gaps(
    said: Bools, positive: Bools, groups: Mapping[str, Bools], weights: Weights
) -> Floats:
    """[draws]: the mean |FPR gap| under each draw's weights."""
    overall = share(said, ~positive, weights)
    harmless = [rows & ~positive for rows in groups.values()]
    large = [rows for rows in harmless if rows.sum() >= FEWEST_ROWS]
    return _mean_known([np.abs(share(said, rows, weights) - overall) for rows in large])


def estimate(values: Floats) -> Estimate:
    """The first value is that of the data itself, the others are of resampled rows."""
    if np.isnan(values[0]):
        return Estimate(None, why="there is no row that it could be counted on")
    low, high = np.nanquantile(values[1:], [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Estimate(float(values[0]), float(low), float(high))


def size_estimate(values: Floats) -> Estimate:
    """Of a mean of absolute values. Resampling adds noise to each, which makes such a mean larger
    by itself, so the interval is turned about the value (the basic bootstrap) and ends at 0."""
    if np.isnan(values[0]):
        why = f"no group has {FEWEST_ROWS} rows that it could be counted on"
        return Estimate(None, why=why)
    low, high = np.nanquantile(values[1:], [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    value = float(values[0])
    turned = (max(0.0, 2 * value - float(high)), max(0.0, 2 * value - float(low)))
    return Estimate(value, min(turned[0], value), max(turned[1], value))


def _mean_known(gaps: list[Floats]) -> Floats:
    """Mean over groups, groups without a rate aside."""
    if not gaps:
        return np.full(1, np.nan)
    table = np.stack(gaps)
    known = ~np.isnan(table)
    return divided(np.where(known, table, 0.0).sum(0), known.sum(0))


def _verdict(rows: int, negatives: int, gap: Estimate) -> str:
    if rows < FEWEST_ROWS or negatives < FEWEST_ROWS:
        return f"no verdict: {rows} rows, {negatives} of them negative; {FEWEST_ROWS} are needed"
    assert gap.low is not None
    assert gap.high is not None
    if gap.low > 0:
        return "flagged more often than others"
    return "flagged less often than others" if gap.high < 0 else "no difference shown"


def _worst(found: list[GroupBias]) -> str | None:
    large = [g for g in found if g.negatives >= FEWEST_ROWS and g.rows >= FEWEST_ROWS]
    if not large:
        return None
    return max(large, key=lambda g: abs(g.fpr_gap.value or 0.0)).name


def _check(scores: Floats, positive: Bools, groups: Mapping[str, Bools]) -> None:
    if scores.ndim != 1 or scores.shape != positive.shape or not len(scores):
        raise ValueError(
            f"There are scores of shape {scores.shape} and labels of shape {positive.shape}; "
            "expected one of each per row."
        )
    if not groups:
        raise ValueError("No groups were given; expected at least one.")
    for name, rows in groups.items():
        if np.shape(rows) != scores.shape:
            raise ValueError(
                f"Group {name!r} has shape {np.shape(rows)}; expected a mark for each of the "
                f"{len(scores)} rows."
            )
