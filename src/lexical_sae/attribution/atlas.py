"""The atlas of linear regions: within one ReLU mask an MLP head is a scorecard, exactly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from lexical_sae.attribution.overview import Scorecard, ranked_points
from lexical_sae.model.heads import MLPHead
from lexical_sae.model.state import CircuitState

if TYPE_CHECKING:
    from lexical_sae.model.lexical_sae import LexicalSAE

REGIONS = 3
POINTS = 20


@dataclass(frozen=True)
class Region:
    """The texts with one mask of hidden units, and the scorecard that holds for all of them."""

    mask: str  # a hidden unit per character, 1 if it is on
    texts: int
    coverage: float
    scorecards: tuple[Scorecard, ...]  # one per label

    def to_dict(self) -> dict[str, Any]:
        return {
            "mask": self.mask,
            "texts": self.texts,
            "coverage": self.coverage,
            "scorecards": [card.to_dict() for card in self.scorecards],
        }


@dataclass(frozen=True)
class Atlas:
    """How many masks occur in how many texts, and the most common regions."""

    texts: int
    masks: int
    regions: tuple[Region, ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "texts": self.texts,
            "masks": self.masks,
            "regions": [region.to_dict() for region in self.regions],
        }


@torch.no_grad()
def linear_regions(
    model: LexicalSAE,
    states: Iterable[CircuitState],
    *,
    regions: int = REGIONS,
    top: int | None = POINTS,
) -> Atlas:
    """The atlas over the texts of `states`; `top` words per scorecard, all of them if None."""
    head = model.head
    if not isinstance(head, MLPHead):
        raise ValueError("Only an MLP head has regions; a linear head has one scorecard.")
    if regions < 1:
        raise ValueError(f"regions is {regions}; expected at least 1.")
    counted: Counter[tuple[bool, ...]] = Counter()
    for state in states:
        counted.update(tuple(row) for row in (head.hidden(state.open_words) > 0).tolist())
    total = sum(counted.values())
    if not total:
        raise ValueError("There are no texts; expected at least one.")
    common = sorted(counted.items(), key=lambda item: (-item[1], item[0]))[:regions]
    return Atlas(
        total,
        len(counted),
        tuple(
            Region(
                "".join("1" if on else "0" for on in mask),
                count,
                count / total,
                region_scorecards(model, torch.tensor(mask), top),
            )
            for mask, count in common
        ),
    )


@torch.no_grad()
def region_scorecards(model: LexicalSAE, mask: Tensor, top: int | None) -> tuple[Scorecard, ...]:
    """One per label, for the hidden units [width] that are on."""
    head = model.head
    assert isinstance(head, MLPHead)
    on = mask.to(head.W2.device, head.W2.dtype)
    points = head.W1 @ (head.W2 * on).T  # [V, C]
    bias = head.b2 if head.b1 is None else head.b2 + (head.W2 * on) @ head.b1
    return tuple(
        Scorecard(
            label,
            float(bias[c]),
            ranked_points(model, points[:, c].tolist(), top),
        )
        for c, label in enumerate(model.config.labels)
    )
