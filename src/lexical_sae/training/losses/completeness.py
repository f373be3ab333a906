"""Completeness: the circuit alone must decide as the whole does."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from lexical_sae.attribution.circuits import circuit_mask
from lexical_sae.model.state import CircuitState
from lexical_sae.training.losses.rows import flat_rows, row_mean


def completeness(
    state: CircuitState,
    attribution: Tensor,
    labels: Tensor | None,
    *,
    form: str,
    fraction: float,
    temperature: float,
    rows: Tensor | None = None,
) -> Tensor:
    """Mean over rows of KL(softmax(full) ‖ softmax(masked)) or of CE(masked, label).

    masked = head(s · mask), with the soft circuit mask of the *predicted* label's attribution [P]:
    a mask from the true label would tell the head the answer. The full logits are the teacher and
    get no gradient. `labels` is for the form "ce" only; with `rows`, labels below 0 do not count.
    """
    open_words = state.open_words
    mask = circuit_mask(
        attribution, open_words, fraction=fraction, soft=True, temperature=temperature
    )
    masked = state.with_open_words(open_words.scaled(mask)).logits.flatten(0, -2)  # [rows, C]
    if form == "kl":
        full = state.logits.detach().flatten(0, -2).log_softmax(-1)  # [rows, C]
        apart = F.kl_div(masked.log_softmax(-1), full, reduction="none", log_target=True)
        return row_mean(apart.sum(-1), rows)
    if form != "ce":
        raise ValueError(f"form is {form!r}; expected 'kl' or 'ce'.")
    if labels is None:
        raise ValueError("The form 'ce' needs labels.")
    labels, counted = labels.reshape(-1), flat_rows(rows)
    if counted is not None:
        counted = counted & (labels >= 0)
        labels = torch.where(counted, labels, torch.zeros_like(labels))
    return row_mean(F.cross_entropy(masked, labels, reduction="none"), counted)
