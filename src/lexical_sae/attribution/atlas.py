"""The atlas of linear regions: within one ReLU mask an MLP head is a scorecard, exactly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from lexical_sae.attribution.overview import Scorecard, ranked_points
from lexical_sae.model.heads import MLPHead
from lexical_sae.model.state import CircuitState

if TYPE_CHECKING:
    from lexical_sae.model.lexical_sae import LexicalSAE

REGIONS = 3
POINTS = 20
Mask = tuple[bool, ...]


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


def linear_regions(
    model: LexicalSAE,
    states: Iterable[CircuitState],
    *,
    regions: int = REGIONS,
    top: int | None = POINTS,
) -> Atlas:
    """The atlas over the texts of `states`; `top` words per scorecard, all of them if None."""
    counted: Counter[Mask] = Counter()
    for state in states:
        counted.update(region_masks(state))
    return atlas_of_masks(model, counted, regions=regions, top=top)


@torch.no_grad()
def region_masks(state: CircuitState) -> list[Mask]:
    """The hidden units that are on, for each row."""
    head = _mlp(state.head)
    return [tuple(row) for row in (head.hidden(state.open_words) > 0).tolist()]


def atlas_of_masks(
    model: LexicalSAE,
    counted: Counter[Mask],
    *,
    regions: int = REGIONS,
    top: int | None = POINTS,
) -> Atlas:
    """The atlas of masks that were counted batch by batch."""
    _mlp(model.head)
    if regions < 1:
        raise ValueError(f"regions is {regions}; expected at least 1.")
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
    head = _mlp(model.head)
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


def _mlp(head: nn.Module) -> MLPHead:
    if not isinstance(head, MLPHead):
        raise ValueError(
            "Only an MLP head has regions; a linear head has one scorecard, and the map of a B-cos "
            "head is another one for every text."
        )
    return head
