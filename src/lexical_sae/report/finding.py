"""What a measurement leaves behind: numbers that say their range, tables, curves, notes.

Plain data, so that it can be saved, resumed, shown as a page and put into a table alike.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Cell = str | float | int | None
Direction = Literal["higher", "lower", "neither"]


@dataclass(frozen=True)
class Metric:
    """A number with its meaning: the range it can take, and which end of it is good."""

    name: str
    meaning: str
    low: float = 0.0
    high: float = 1.0
    better: Direction = "higher"

    @property
    def best(self) -> float | None:
        """The value of a perfect model, if there is one."""
        if self.better == "neither":
            return None
        return self.high if self.better == "higher" else self.low

    def check(self, value: float) -> None:
        """A value outside of the range is a fault of the measurement."""
        spare = 1e-6 * max(1.0, abs(value))
        if not self.low - spare <= value <= self.high + spare:
            raise ValueError(
                f"{self.name} is {value}; expected a number from {self.low} to {self.high}."
            )


@dataclass(frozen=True)
class Estimate:
    """A value, None where it is undefined (then `why` says so), with an interval if it has one."""

    value: float | None
    low: float | None = None
    high: float | None = None
    why: str = ""


@dataclass(frozen=True)
class FindingTable:
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True)
class Curve:
    """Lines over a common axis; a line is a name and its points."""

    title: str
    x: str
    y: str
    lines: dict[str, tuple[tuple[float, float], ...]]


@dataclass(frozen=True)
class Dot:
    """A row of a plot of estimates; `beside` is said at its end, such as a number of words."""

    name: str
    found: Estimate
    beside: str = ""


@dataclass(frozen=True)
class DotPlot:
    """Estimates of the same thing under each other, each with its interval if it has one."""

    title: str
    x: str
    dots: tuple[Dot, ...]
    bars: str = "Bars are 95 % intervals."  # what the lines beside the dots are


@dataclass(frozen=True)
class Finding:
    """The result of one step of an evaluation."""

    metrics: dict[str, Estimate] = field(default_factory=dict)
    tables: tuple[FindingTable, ...] = ()
    curves: tuple[Curve, ...] = ()
    dots: tuple[DotPlot, ...] = ()
    worst: tuple[dict[str, Cell], ...] = ()
    notes: tuple[str, ...] = ()
    failed: str = ""  # why a check did not hold; empty if it did

    def to_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = _plain(asdict(self))
        return found

    @classmethod
    def from_dict(cls, found: dict[str, Any]) -> Finding:
        return cls(
            metrics={name: Estimate(**value) for name, value in found["metrics"].items()},
            tables=tuple(
                FindingTable(
                    table["title"],
                    tuple(table["columns"]),
                    tuple(tuple(row) for row in table["rows"]),
                )
                for table in found["tables"]
            ),
            curves=tuple(
                Curve(
                    curve["title"],
                    curve["x"],
                    curve["y"],
                    {
                        name: tuple((float(x), float(y)) for x, y in points)
                        for name, points in curve["lines"].items()
                    },
                )
                for curve in found["curves"]
            ),
            dots=tuple(
                DotPlot(
                    plot["title"],
                    plot["x"],
                    tuple(
                        Dot(dot["name"], Estimate(**dot["found"]), dot["beside"])
                        for dot in plot["dots"]
                    ),
                    plot.get("bars", DotPlot.bars),
                )
                for plot in found.get("dots", ())  # none in files of earlier versions
            ),
            worst=tuple(found["worst"]),
            notes=tuple(found["notes"]),
            failed=found["failed"],
        )


def _plain(value: Any) -> Any:
    """Without numbers that JSON does not know."""
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
