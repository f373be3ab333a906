"""Where something was measured, in words: the dataset, and the backbone where there are several."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from lexical_sae.studies.cells import short_name


class Placed(Protocol):
    """A cell or an arm."""

    @property
    def dataset(self) -> str: ...

    @property
    def backbone(self) -> str: ...


Place = tuple[str, str]  # dataset and backbone


def place_of(one: Placed) -> Place:
    return one.dataset, one.backbone


def place_names(ones: Iterable[Placed]) -> dict[Place, str]:
    """What to call each place, in their order. The one backbone of a study needs no name; of
    several each has one, also the usual one: who reads a line alone must know which it is of."""
    places = list(dict.fromkeys(map(place_of, ones)))
    several = len({backbone for _, backbone in places}) > 1
    return {
        (dataset, backbone): f"{dataset}, {short_name(backbone)}" if several else dataset
        for dataset, backbone in places
    }
