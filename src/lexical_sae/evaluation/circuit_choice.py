"""How large the circuit of a class is, and which texts it is read from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from lexical_sae.evaluation.held_out import same_labels
from lexical_sae.text.dataset import TextDataset

FRACTION = 0.1


@dataclass(frozen=True, eq=False)
class CircuitChoice:
    """Either a fraction of the words that count for a class, or the fewest words that hold a share
    (mass) of its |contribution|; `data` None is the training split."""

    fraction: float | None = FRACTION
    mass: float | None = None
    data: TextDataset | None = None

    def __post_init__(self) -> None:
        if (self.fraction is None) == (self.mass is None):
            raise ValueError(
                f"The circuit's fraction is {self.fraction} and its mass {self.mass}; expected one "
                "of the two."
            )
        for name, value in self.size.items():
            if value is not None and not 0 < value <= 1:
                raise ValueError(
                    f"The circuit's {name} is {value}; expected a number above 0 and at most 1."
                )

    @property
    def size(self) -> dict[str, float | None]:
        """As `class_circuits` takes it."""
        return {"fraction": self.fraction, "mass": self.mass}

    def with_labels(self, labels: list[str]) -> CircuitChoice:
        """With labels counted as the model counts them."""
        return self if self.data is None else replace(self, data=same_labels(self.data, labels))

    @property
    def split(self) -> str:
        return "train" if self.data is None else self.data.split

    @property
    def said(self) -> str:
        """For a note."""
        if self.mass is not None:
            return f"the fewest words that hold {100 * self.mass:g} % of a class's |contribution|"
        return f"the top {100 * (self.fraction or 0):g} % of the words that count for a class"


def circuit_choice(
    splits: Mapping[str, TextDataset],
    measured: str,
    fraction: float | None,
    mass: float | None,
    split: str | None,
) -> CircuitChoice:
    """From the options of a command; `splits` are those of the data, by name."""
    if fraction is not None and mass is not None:
        raise ValueError("--circuit-fraction and --circuit-mass are both given; expected one.")
    if fraction is None and mass is None:
        fraction = FRACTION
    if split is None:
        return CircuitChoice(fraction, mass)
    if split not in splits:
        raise ValueError(
            f"--circuit-split is {split!r}, which the data do not have; expected one of "
            f"{', '.join(name for name in splits if name != measured)}."
        )
    if split == measured:
        raise ValueError(
            f"--circuit-split is {split!r}, the split that is measured; expected another, since "
            "nothing is fitted on what is measured."
        )
    return CircuitChoice(fraction, mass, None if split == "train" else splits[split])
