"""The one attribution function, used by losses, metrics, explanations and interventions alike."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from lexical_sae.model.state import CircuitState


def compute_attribution_tensor(
    state: CircuitState,
    classes: int | Sequence[int] | None = None,
    *,
    row_classes: Tensor | None = None,
) -> Tensor:
    """A[p, c] = s_p · W_eff[c, word p], at the open words only; row sums + b_eff = logits.

    All classes: [P, C]. `classes` an int: [P]; several: [P, K]. `row_classes`, of the shape of
    the rows (for instance `state.predicted`): each row's own class, [P]. The order of the pairs
    is that of `state.open_words`. Differentiable; never wider than open words × wanted classes.
    """
    open_words = state.open_words
    device = open_words.value.device
    if row_classes is not None:
        if classes is not None:
            raise ValueError("Give classes or row_classes, not both.")
        if row_classes.numel() != open_words.rows:
            raise ValueError(
                f"row_classes has {row_classes.numel()} entries; expected one for each of the "
                f"{open_words.rows} rows."
            )
        low, high = int(row_classes.min()), int(row_classes.max())
        if low < 0 or high >= state.head.classes:
            raise ValueError(
                f"row_classes goes from {low} to {high}; expected 0 to {state.head.classes - 1}."
            )
        weights = state.head.decided_weights(open_words, row_classes.reshape(-1))  # [P]
        return open_words.value * weights
    if classes is None:
        return open_words.value[:, None] * state.effective_weights()
    wanted = [classes] if isinstance(classes, int) else list(classes)
    for c in wanted:
        if not 0 <= c < state.head.classes:
            raise ValueError(f"Class {c} does not exist; expected 0 to {state.head.classes - 1}.")
    index = torch.tensor(wanted, dtype=torch.long, device=device)
    contributions = open_words.value[:, None] * state.effective_weights(index)  # [P, K]
    return contributions[:, 0] if isinstance(classes, int) else contributions


def sum_by_row(values: Tensor, row: Tensor, rows: int) -> Tensor:
    """values [P] or [P, C] → [rows] or [rows, C]."""
    return values.new_zeros(rows, *values.shape[1:]).index_add(0, row, values)
