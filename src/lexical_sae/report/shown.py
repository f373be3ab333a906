"""Numbers as people read them."""

from __future__ import annotations

from lexical_sae.report.finding import Cell


def shown(value: Cell) -> str:
    """A cell for people: four significant digits, whole numbers with thousands."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, int) or float(value).is_integer():
        return f"{int(value):,}"
    return f"{value:.1e}" if 0 < abs(value) < 1e-3 else f"{value:.4g}"


def percent(share: float | None) -> float | None:
    """What is undefined stays so."""
    return None if share is None else 100 * share
