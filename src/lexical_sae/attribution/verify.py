"""Verification: does every explanation add up to its logit? The residual, per sample."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from lexical_sae.attribution.contributions import compute_attribution_tensor, sum_by_row
from lexical_sae.model.state import CircuitState

FP32_TOLERANCE = 1e-5
FP64_TOLERANCE = 1e-12


@dataclass(frozen=True, eq=False)
class SumCheck:
    """|Σ contributions + b_eff − logit|, the largest over classes, for each row."""

    residual: Tensor  # [rows] in the model's own precision
    residual_fp64: Tensor  # [rows] the same open words through the same head in fp64
    scale: Tensor  # [rows] 1 + largest Σ|contributions|: what rounding is relative to

    @property
    def ok(self) -> bool:
        fp32 = self.residual <= FP32_TOLERANCE * self.scale
        fp64 = self.residual_fp64 <= FP64_TOLERANCE * self.scale
        return bool(fp32.all() and fp64.all())

    def to_dict(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "rows": int(self.residual.numel()),
            "max_residual": float(self.residual.max()) if self.residual.numel() else 0.0,
            "max_residual_fp64": (
                float(self.residual_fp64.max()) if self.residual_fp64.numel() else 0.0
            ),
        }


@torch.no_grad()
def verify_sum(state: CircuitState) -> SumCheck:
    """Recompute every logit of `state` from its contributions and compare."""
    residual, scale = _residual(state)
    head = copy.deepcopy(state.head).double()
    open_words = replace(state.open_words, value=state.open_words.value.double())
    exact = replace(state, head=head).with_open_words(open_words)
    residual_fp64, _ = _residual(exact)
    return SumCheck(residual, residual_fp64, scale)


def _residual(state: CircuitState) -> tuple[Tensor, Tensor]:
    open_words = state.open_words
    contributions = compute_attribution_tensor(state)  # [P, C]
    total = sum_by_row(contributions, open_words.row, open_words.rows)  # [rows, C]
    bias = state.head.effective_bias(open_words)
    logits = state.logits.reshape(open_words.rows, -1)
    size = sum_by_row(contributions.abs(), open_words.row, open_words.rows)
    return (total + bias - logits).abs().amax(-1), 1 + size.amax(-1)
