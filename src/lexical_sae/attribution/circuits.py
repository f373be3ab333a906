"""Circuits: the few open words that carry a decision, per text and per class.

One mask function serves training (soft) and evaluation (hard), and counts over open words: a
fraction of the whole vocabulary would be far more than is open and mask nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from lexical_sae.attribution.contributions import compute_attribution_tensor, sum_by_row
from lexical_sae.model.open_words import OpenWords, largest_first, rank_in_row
from lexical_sae.model.state import CircuitState


def circuit_mask(
    attribution: Tensor,
    open_words: OpenWords,
    *,
    fraction: float | None = None,
    k: int | None = None,
    mass: float | None = None,
    soft: bool = False,
    temperature: float = 0.1,
) -> Tensor:
    """[P] in [0, 1]: 1 for the words of each row's circuit, by |attribution| [P].

    `fraction`: the top ⌈fraction · open⌉ words. `k`: the top k. `mass`: the fewest words that hold
    this share of Σ|A|. A word that contributes nothing is never in. `soft` gives σ((|A| − t)/τ)
    instead, with t between the last word in and the first word out and τ = temperature · the
    row's mean |A|.
    """
    _check_choice(fraction, mass, k)
    if not temperature > 0:
        raise ValueError(f"temperature is {temperature}; expected a number above 0.")
    size = attribution.abs()
    rank = rank_in_row(open_words.row, size.detach(), open_words.rows)
    total, count = _row_totals(size.detach(), open_words)
    if fraction is not None:
        # the small step back keeps 0.1 · 10 words from rounding up to two
        allowed = torch.ceil(fraction * count.double() - 1e-9)
        chosen = rank < allowed[open_words.row]
    elif k is not None:
        chosen = rank < k
    else:
        assert mass is not None
        before = _mass_before(size.detach(), open_words)
        chosen = before < mass * total[open_words.row] - 1e-12 * total[open_words.row]
    chosen = chosen & (size.detach() > 0)
    if not soft:
        return chosen.to(attribution.dtype)
    threshold = _between(size.detach(), open_words, chosen)
    mean = (total / count.clamp(min=1)).to(size.dtype)
    some = (mean > 0)[open_words.row]  # rows whose contributions are all 0 have no circuit
    width = torch.where(some, temperature * mean[open_words.row], torch.ones_like(size))
    return torch.sigmoid((size - threshold[open_words.row]) / width) * some


def _check_choice(fraction: float | None, mass: float | None, k: int | None) -> None:
    given = {"fraction": fraction, "mass": mass, "k": k}
    chosen = {name: value for name, value in given.items() if value is not None}
    if len(chosen) != 1:
        found = ", ".join(chosen) or "none"
        raise ValueError(f"Give one of fraction, k and mass (found: {found}), e.g. fraction=0.1.")
    if k is not None and k < 1:
        raise ValueError(f"k is {k}; expected at least 1.")
    for name, value in (("fraction", fraction), ("mass", mass)):
        if value is not None and not 0 < value <= 1:
            raise ValueError(f"{name} is {value}; expected a number above 0 and at most 1.")


def _row_totals(size: Tensor, open_words: OpenWords) -> tuple[Tensor, Tensor]:
    """Σ|A| (fp64) and the number of open words, per row."""
    total = sum_by_row(size.double(), open_words.row, open_words.rows)
    return total, open_words.counts().reshape(-1)


def _mass_before(size: Tensor, open_words: OpenWords) -> Tensor:
    """[P]: Σ|A| of the larger words of the same row, in fp64."""
    order = largest_first(open_words.row, size)
    sorted_size = size[order].double()
    running = torch.cumsum(sorted_size, 0) - sorted_size
    start = open_words.offsets[:-1].clamp(max=max(len(open_words) - 1, 0))
    if len(open_words):
        running = running - running[start][open_words.row[order]]
    before = torch.empty_like(running)
    before[order] = running
    return before


def _between(size: Tensor, open_words: OpenWords, chosen: Tensor) -> Tensor:
    """[rows]: midway between the smallest |A| inside and the largest outside (0 if none)."""
    rows = open_words.rows
    inside = size.new_full((rows,), torch.inf)
    inside = inside.scatter_reduce(0, open_words.row[chosen], size[chosen], "amin")
    outside = size.new_zeros(rows)
    outside = outside.scatter_reduce(0, open_words.row[~chosen], size[~chosen], "amax")
    return torch.where(torch.isinf(inside), outside, (inside + outside) / 2)


@dataclass(frozen=True, eq=False)
class ClassAttributions:
    """Mean |A| of every word for each class, over the rows that belong to that class."""

    mean: Tensor  # [C, V]
    rows: Tensor  # [C] number of rows behind each mean


@dataclass(frozen=True)
class ClassCircuit:
    """The words that carry a class, largest first; empty if no row of the class was seen."""

    class_index: int
    rows: int
    coordinates: tuple[int, ...]
    mean_attribution: tuple[float, ...]
    share: float  # of the class's total mean |A| that these words hold

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@torch.no_grad()
def collect_class_attributions(
    states: Iterable[CircuitState], *, labels: Iterable[Tensor] | None = None
) -> ClassAttributions:
    """Over batches; a row counts for its predicted class, or for its label if given (a label
    below 0 leaves the row out). Padding and special tokens of a tagged batch count for nothing."""
    total: Tensor | None = None
    label_batches = iter(labels) if labels is not None else None
    for state in states:
        open_words, classes = state.open_words, state.head.classes
        given = state.predicted if label_batches is None else next(label_batches, None)
        if given is None or given.numel() != open_words.rows or int(given.max()) >= classes:
            raise ValueError(
                f"labels does not fit: expected for every batch one label below {classes} for each "
                f"of its rows ({open_words.rows} in this one)."
            )
        row_class = given.reshape(-1)
        if state.real_rows is not None:
            row_class = row_class.where(state.real_rows.reshape(-1), -1)
        if total is None:
            total = open_words.value.new_zeros(classes, open_words.dictionary_size)
            rows = torch.zeros(classes, dtype=torch.long, device=total.device)
        counted = row_class >= 0
        rows += torch.bincount(row_class[counted], minlength=classes)
        size = compute_attribution_tensor(state, row_classes=row_class.clamp(min=0)).abs()
        kept = counted[open_words.row]
        where = (row_class[open_words.row[kept]], open_words.word[kept])
        total.index_put_(where, size[kept], accumulate=True)
    if total is None:
        raise ValueError("No batches were given; expected at least one CircuitState.")
    return ClassAttributions(total / rows.clamp(min=1)[:, None], rows)


def class_circuits(
    attributions: ClassAttributions, *, fraction: float | None = None, mass: float | None = None
) -> list[ClassCircuit]:
    """Each class's circuit: a fraction of the words that ever open for it, or a share of mass."""
    _check_choice(fraction, mass, None)
    circuits = []
    for index, (mean, rows) in enumerate(
        zip(attributions.mean, attributions.rows.tolist(), strict=True)
    ):
        values, words = torch.sort(mean, descending=True, stable=True)
        seen = int((values > 0).sum())
        if fraction is not None:
            keep = math.ceil(fraction * seen - 1e-9)
        else:
            cumulative = values[:seen].double().cumsum(0)
            keep = int((cumulative < (mass or 0) * cumulative[-1]).sum()) + 1 if seen else 0
        total = float(values.double().sum())
        circuits.append(
            ClassCircuit(
                class_index=index,
                rows=rows,
                coordinates=tuple(words[:keep].tolist()),
                mean_attribution=tuple(values[:keep].tolist()),
                share=float(values[:keep].double().sum()) / total if total else 0.0,
            )
        )
    return circuits
