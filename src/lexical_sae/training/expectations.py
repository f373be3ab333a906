"""Say what a setting may be, and what was found instead, in one sentence.

The ranges are read from the pydantic models, so messages, documentation and checks cannot differ.
"""

from __future__ import annotations

import difflib
import types
from collections.abc import Iterable
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

_BOUNDS = (("ge", "at least"), ("gt", "above"), ("le", "at most"), ("lt", "below"))


def expectation(field: FieldInfo) -> str:
    """For example "a number above 0 and at most 1, or null"."""
    kind, bounds, optional = _unwrap(field.annotation, list(field.metadata))
    text = _kind(kind)
    limits = [f"{words} {_number(bounds[key])}" for key, words in _BOUNDS if key in bounds]
    if limits:
        of = "of " if limits[0].startswith("at ") else ""
        text = f"{text} {of}{' and '.join(limits)}"
    return f"{text}, or null" if optional else text


def part_of(field: FieldInfo) -> type[BaseModel] | None:
    """The model behind a field that is a mapping in YAML, else None."""
    kind, _, _ = _unwrap(field.annotation, [])
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def _unwrap(annotation: Any, metadata: list[Any]) -> tuple[Any, dict[str, float], bool]:
    """The bare type, its bounds, and whether null is allowed."""
    optional = False
    if get_origin(annotation) in (Union, types.UnionType):
        (annotation,) = (one for one in get_args(annotation) if one is not type(None))
        optional = True
    if get_origin(annotation) is Annotated:
        annotation, *inner = get_args(annotation)
        metadata = metadata + inner
    bounds: dict[str, float] = {}
    for item in metadata:
        for one in item.metadata if isinstance(item, FieldInfo) else [item]:
            for key, _ in _BOUNDS:
                if getattr(one, key, None) is not None:
                    bounds[key] = getattr(one, key)
    return annotation, bounds, optional


def _kind(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return f"one of {', '.join(get_args(kind))}"
    if get_origin(kind) is list:
        return "a list of texts"
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return f"a mapping with any of {', '.join(kind.model_fields)}"
    names: dict[Any, str] = {int: "a whole number", float: "a number", bool: "true or false"}
    return names.get(kind, "a text")


def _number(value: float) -> str:
    return f"{int(value):,}" if float(value).is_integer() else f"{value:g}"


def nearest_key(key: object, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown name: the nearest known one, or all of them."""
    known = list(known)
    near = difflib.get_close_matches(str(key), known, n=1, cutoff=0.6) if _short(key) else []
    return f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}."


def _short(key: object) -> bool:
    return isinstance(key, str) and len(key) < 100


def shown(value: object, depth: int = 2) -> str:
    """A value as YAML would have it, on one line and never long."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and abs(value) >= 10**18:
        return f"a number of {value.bit_length()} bits"
    if isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, str):
        return repr(value) if len(value) <= 60 else f"{value[:57]!r}..."
    if isinstance(value, dict):
        pairs = list(value.items())[:4] if depth else []
        inside = [f"{shown(key, 0)}: {shown(inner, depth - 1)}" for key, inner in pairs]
        return "{" + ", ".join(inside + ["..."] * (len(value) > len(pairs))) + "}"
    if isinstance(value, (list, tuple)):
        inside = [shown(inner, depth - 1) for inner in value[:4]] if depth else []
        return "[" + ", ".join(inside + ["..."] * (len(value) > len(inside))) + "]"
    return f"a {type(value).__name__}"
