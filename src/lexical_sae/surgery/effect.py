"""What a cut does to decisions: as the contributions predict it, and as it is.

Removing words changes a logit by minus their contributions as long as no hidden unit of the head
switches. With a linear head that always holds; with an mlp head the two are shown side by side,
with the number of units that switched.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from lexical_sae.attribution.contributions import compute_attribution_tensor, sum_by_row
from lexical_sae.model.heads import MLPHead
from lexical_sae.model.open_words import OpenWords
from lexical_sae.model.state import CircuitState


@dataclass(frozen=True, eq=False)
class Effect:
    """Of N decisions, for the class that was decided before the cut."""

    predicted: Tensor  # [N] −Σ contributions of the words that are gone
    realised: Tensor  # [N] change of the logit
    switched: Tensor  # [N] hidden units that are on before and off after, or the other way
    changed: Tensor  # [N] whether another class is decided now
    touched: Tensor  # [N] whether anything changed

    def summary(self) -> dict[str, float]:
        apart = (self.predicted - self.realised).abs()
        return {
            "rows": len(self.predicted),
            "rows_touched": int(self.touched.sum()),
            "decisions_changed": int(self.changed.sum()),
            "mean_predicted_change": _mean(self.predicted),
            "mean_realised_change": _mean(self.realised),
            "largest_difference": float(apart.max()) if len(apart) else 0.0,
            "mean_units_switched": _mean(self.switched.double()),
        }


def _mean(values: Tensor) -> float:
    return float(values.double().mean()) if len(values) else 0.0


def in_words(open_words: OpenWords, coordinates: Iterable[int]) -> Tensor:
    """[P]: whether each open word is among the coordinates."""
    chosen = torch.zeros(open_words.dictionary_size, dtype=torch.bool)
    chosen[list(coordinates)] = True
    return chosen.to(open_words.word.device)[open_words.word]


@torch.no_grad()
def after_removal(state: CircuitState, coordinates: Iterable[int]) -> CircuitState:
    """The decisions without these words; the same as a pass of the cut model unless it keeps only
    so many words per token (there another word would take the free place)."""
    return state.with_open_words(state.open_words.subset(~in_words(state.open_words, coordinates)))


@torch.no_grad()
def effect_of(
    before: CircuitState,
    after: CircuitState,
    coordinates: Iterable[int],
    unread: Tensor | None = None,
    read_anew: Tensor | None = None,
) -> Effect:
    """Compare the decisions [N] of a model with those of the same model without some words.
    `unread` [N] is what was opened by words that are no longer read; `read_anew` [N] marks texts
    that hold one, since others may differ in their last bits: batches are padded otherwise."""
    decided = before.predicted
    contribution = compute_attribution_tensor(before, row_classes=decided)
    gone = contribution * in_words(before.open_words, coordinates)
    predicted = -sum_by_row(gone, before.open_words.row, before.open_words.rows)
    predicted = predicted if unread is None else predicted - unread
    change = (after.logits - before.logits).gather(1, decided[:, None])[:, 0]
    switched = _switched(before, after)
    touched = (predicted != 0) | (change != 0) | (switched > 0)
    if read_anew is not None:
        cut = sum_by_row((gone != 0).double(), before.open_words.row, before.open_words.rows)
        touched = read_anew | (cut > 0)
    return Effect(predicted, change, switched, after.predicted != decided, touched)


def _switched(before: CircuitState, after: CircuitState) -> Tensor:
    head = before.head
    if not isinstance(head, MLPHead):
        return torch.zeros(before.open_words.rows, dtype=torch.long)
    on = [head.hidden(state.open_words) > 0 for state in (before, after)]
    return (on[0] != on[1]).sum(1)
