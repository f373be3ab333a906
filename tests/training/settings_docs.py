"""The settings reference in docs/recipes.md, as the models would have it."""

from __future__ import annotations

from pydantic.fields import FieldInfo

from lexical_sae.training.config import RUN_FIELDS
from lexical_sae.training.expectations import expectation, part_of, shown
from lexical_sae.training.settings import Settings


def row_start(name: str, field: FieldInfo) -> str:
    """A row of the reference up to the meaning, which people write."""
    expected, default = expectation(field), field.default
    if part_of(field) is not None:
        expected = "a mapping, see below" + (", or null" if default is None else "")
        default = None if default is None else {}
    shown_default = "required" if field.is_required() else f"`{shown(default)}`"
    return f"| `{name}` | {expected} | {shown_default} |"


def reference_rows() -> dict[str, list[str]]:
    """Section of the reference → the start of each of its rows."""
    top = {**RUN_FIELDS, **Settings.model_fields}
    rows = {"Settings": [row_start(name, field) for name, field in top.items()]}
    for name, field in top.items():
        if part := part_of(field):
            rows[name] = [row_start(key, inner) for key, inner in part.model_fields.items()]
    return rows
