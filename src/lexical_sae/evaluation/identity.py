"""Step 1: does every sum add up to its logit?"""

from __future__ import annotations

import torch

from lexical_sae.attribution.verify import FP32_TOLERANCE, FP64_TOLERANCE, verify_sum
from lexical_sae.evaluation.reading import Reading
from lexical_sae.report.finding import Estimate, Finding


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
    return Finding(
        metrics={
            "residual_mean": Estimate(float(residual.mean())),
            "residual_p99": Estimate(float(residual.quantile(0.99))),
            "residual_max": Estimate(float(residual.max())),
            "residual_max_fp64": Estimate(float(exact.max())),
            "residual_relative": Estimate(float(relative)),
        },
        notes=(f"{reading.rows:,} decisions",),
        failed=failed,
    )
