"""Uncertainty weighting: how much each term counts is learned."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor, nn

from lexical_sae.training.distributed import mean_over_processes

# A term that has reached 0 (or is below it) leaves only ½v, which has no minimum: v would fall
# without end and exp(−v) overflow. Within these bounds a weight stays between 0.0012 and 202.
_BOUND = 6.0


class UncertaintyWeights(nn.Module):
    """Σ_i ½ · exp(−v_i) · L_i + ½ · v_i, one v per named term, 0 at the start.

    v takes its gradient from the mean of L over processes, so it stays equal on all of them also
    when it lives outside the module that DDP wraps. Leave it out of weight decay.
    """

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__()
        self.names = tuple(names)
        self.v = nn.Parameter(torch.zeros(len(self.names)))

    def combine(self, terms: Mapping[str, Tensor]) -> Tensor:
        """The weighted sum of the given terms; all of them must have been named."""
        unknown = sorted(set(terms) - set(self.names))
        if unknown or not terms:
            raise ValueError(f"terms are {list(terms)}; expected some of {list(self.names)}.")
        index = [self.names.index(name) for name in terms]
        raw = self.v[index]  # [n]
        # clamped in value only: with the clamp's own gradient, 0, it could never come back
        v = raw + (raw.clamp(-_BOUND, _BOUND) - raw).detach()
        loss = torch.stack([term.reshape(()) for term in terms.values()])  # [n]
        weight = 0.5 * torch.exp(-v)
        for_v = weight * mean_over_processes(loss.detach())  # gradient of v alone
        return (weight.detach() * loss + for_v - for_v.detach() + 0.5 * v).sum()

    def weights(self) -> dict[str, float]:
        """½ · exp(−v) by name, for the log."""
        weight = 0.5 * torch.exp(-self.v.detach().clamp(-_BOUND, _BOUND))
        return dict(zip(self.names, weight.tolist(), strict=True))
