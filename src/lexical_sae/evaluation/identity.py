"""Step 1: does every sum add up to its logit?"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from lexical_sae.attribution.verify import FP32_TOLERANCE, FP64_TOLERANCE, verify_sum
from lexical_sae.evaluation.reading import Reading
from lexical_sae.report.finding import Cell, Estimate, Finding, FindingTable


def measure_identity(reading: Reading) -> Finding:
    """The residual of every decision, in single and double precision; fails above 1e-5 (1e-12) of
    its scale."""
    checks = [verify_sum(state) for state, _ in reading.chunks()]
    residual = torch.cat([check.residual for check in checks]).double()
    exact = torch.cat([check.residual_fp64 for check in checks])
    scale = torch.cat([check.scale for check in checks]).double()
    relative, relative_fp64 = (residual / scale).max(), (exact / scale).max()
    failed = ""
    if float(relative) > FP32_TOLERANCE:
        failed = f"a sum is off by {float(relative):.1e} of its scale, more than {FP32_TOLERANCE}"
    elif float(relative_fp64) > FP64_TOLERANCE:
        failed = (
            f"a sum is off by {float(relative_fp64):.1e} of its scale in double precision, more "
            f"than {FP64_TOLERANCE}"
        )
    kinds = {
        "single": (residual, relative, FP32_TOLERANCE),
        "double": (exact, relative_fp64, FP64_TOLERANCE),
    }
    rows: list[tuple[Cell, ...]] = [
        (name, *_sizes(found), float(worst), bound, 100 * float(worst) / bound)
        for name, (found, worst, bound) in kinds.items()
    ]
    columns = (
        *("precision", "mean", "99th percentile", "largest", "largest over its scale"),
        *("bound of that", "of the bound, %"),
    )
    sizes = ("residual_mean", "residual_p99", "residual_max")
    return Finding(
        metrics={
            **_estimates(sizes, residual),
            **_estimates([f"{name}_fp64" for name in sizes], exact),
            "residual_relative": Estimate(float(relative)),
        },
        tables=(FindingTable("|sum of contributions − logit|", columns, tuple(rows)),),
        notes=(f"{reading.rows:,} decisions",),
        failed=failed,
    )


def _sizes(residual: Tensor) -> tuple[float, float, float]:
    """Mean, 99th percentile and maximum."""
    return float(residual.mean()), float(residual.quantile(0.99)), float(residual.max())


def _estimates(names: Sequence[str], residual: Tensor) -> dict[str, Estimate]:
    return dict(zip(names, map(Estimate, _sizes(residual)), strict=True))
