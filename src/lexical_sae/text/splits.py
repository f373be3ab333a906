"""Cutting a held-out part from a training set: stratified, seeded, the same every time."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt

from lexical_sae.text.dataset import TextDataset
from lexical_sae.text.errors import DataError

# The test part of a set that has none must never move, so its seed is not the caller's.
TEST_SEED = 0
TEST_FRACTION = 0.1

Indices = npt.NDArray[np.intp]


def stratified_cut(labels: Sequence[int], fraction: float, seed: int) -> tuple[Indices, Indices]:
    """Positions that stay and positions that are cut, each in their old order.

    Every class gives ``fraction`` of its rows, rounded so that the whole adds up (largest
    remainder), and keeps at least one row: a class seen once is never cut away from training.
    """
    if not 0 <= fraction < 1:
        raise ValueError(f"the fraction to cut is {fraction}; it must be at least 0 and below 1.")
    classes, of_row, sizes = np.unique(
        np.asarray(labels, dtype=np.int64), return_inverse=True, return_counts=True
    )
    share = fraction * sizes
    take = np.floor(share).astype(np.int64)
    wanted = max(1, round(fraction * len(labels))) if fraction else 0
    for c in np.argsort(take - share, kind="stable"):  # largest remainder first, ties by class
        if take.sum() < wanted and share[c] > take[c] and take[c] + 1 < sizes[c]:
            take[c] += 1
    rng = np.random.default_rng(seed)
    picked = [rng.permutation(np.flatnonzero(of_row == c))[: take[c]] for c in range(len(classes))]
    cut = np.sort(np.concatenate(picked)) if picked else np.empty(0, dtype=np.intp)
    return np.setdiff1d(np.arange(len(labels)), cut), cut


def cut_dataset(
    dataset: TextDataset, fraction: float, seed: int, into: str
) -> tuple[TextDataset, TextDataset]:
    """``dataset`` in two: what stays, and the part for the split ``into``.

    Rows with the same text go to the same side, so that nothing is learnt by heart and then
    tested. Classification is stratified by label; tagging is a plain seeded cut.
    """
    first_of, twins = _group_rows(dataset)
    labels = dataset.labels if dataset.task == "classification" else [0] * len(dataset)
    _, cut = stratified_cut([labels[i] for i in first_of], fraction, seed)
    rows = sorted(row for group in cut for row in twins[group])
    if not rows:
        raise DataError(
            f"{dataset.name} has too few rows ({len(dataset):,}) to cut a {into} split from its "
            f"{dataset.split} split; give a {into} file or more rows."
        )
    chosen = set(rows)
    kept = [i for i in range(len(dataset)) if i not in chosen]
    kind = "stratified by label, " if dataset.task == "classification" else ""
    held_out = dataset.select(rows).with_notes(
        f"{into} split: {len(rows):,} rows cut from {dataset.split} ({kind}seed {seed}), because "
        "the source has none"
    )
    rest = dataset.select(kept).with_notes(
        f"{len(rows):,} of {len(dataset):,} rows taken out as the {into} split (seed {seed})"
    )
    return rest, held_out


def _group_rows(dataset: TextDataset) -> tuple[list[int], list[list[int]]]:
    """First row and all rows of each distinct text; case and spacing do not tell texts apart."""
    groups: dict[Hashable, list[int]] = {}
    for i in range(len(dataset)):
        if dataset.task == "classification":
            key: Hashable = " ".join(dataset.texts[i].lower().split())
        else:
            key = tuple(dataset.tokens[i])
        groups.setdefault(key, []).append(i)
    twins = list(groups.values())
    return [rows[0] for rows in twins], twins
