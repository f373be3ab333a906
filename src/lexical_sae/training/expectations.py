"""Say what a setting may be, and what was found instead, in one sentence.

The ranges are read from the pydantic models, so messages, documentation and checks cannot differ.
"""

from __future__ import annotations

import difflib
import types
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

_BOUNDS = (("ge", "at least"), ("gt", "above"), ("le", "at most"), ("lt", "below"))


def expectation(field: FieldInfo) -> str:
    """For example "a number above 0 and at most 1, or null"."""
    return _expected(field.annotation, list(field.metadata))


def expectation_at(model: type[BaseModel], path: Sequence[int | str]) -> tuple[int, str]:
    """What the value at `path` may be, and how many steps of the path lead to it: pydantic's go on
    into the alternatives of a value that may be of several kinds."""
    annotation: Any = model
    metadata: list[Any] = []
    for depth, step in enumerate(path):
        kinds, _, _ = _unwrap(annotation, metadata)
        inner = _inner(kinds[0], step) if len(kinds) == 1 else None
        if inner is None:
            return depth, _expected(annotation, metadata)
        annotation, metadata = inner
    return len(path), _expected(annotation, metadata)


def part_of(field: FieldInfo) -> type[BaseModel] | None:
    """The model behind a field that is a mapping in YAML, else None."""
    kinds, _, _ = _unwrap(field.annotation, [])
    return kinds[0] if len(kinds) == 1 and _is_model(kinds[0]) else None


def hint(value: object, expected: str) -> str:
    """How to write the value, where it is plain what was meant."""
    if expected.startswith("a whole number") and isinstance(value, float):
        return f" (write {int(value)})" if value.is_integer() else ""
    number = isinstance(value, (int, float))
    return " (put it in quotes)" if expected.startswith("a text") and number else ""


def _expected(annotation: Any, metadata: list[Any], *, many: bool = False) -> str:
    kinds, bounds, optional = _unwrap(annotation, metadata)
    text = " or ".join(_kind(kind, many=many) for kind in kinds)
    limits = [f"{words} {_number(bounds[key])}" for key, words in _BOUNDS if key in bounds]
    if limits:
        of = "of " if limits[0].startswith("at ") else ""
        text = f"{text} {of}{' and '.join(limits)}"
    pattern = next((one.pattern for one in metadata if getattr(one, "pattern", None)), None)
    if pattern:
        text = f"{text} of the form {pattern}"
    return f"{text}, or null" if optional else text


def _unwrap(annotation: Any, metadata: list[Any]) -> tuple[list[Any], dict[str, float], bool]:
    """The bare types (one, but for a union), their bounds, and whether null is allowed."""
    optional = False
    if get_origin(annotation) in (Union, types.UnionType):
        kinds = [one for one in get_args(annotation) if one is not type(None)]
        optional = len(kinds) < len(get_args(annotation))
        if len(kinds) > 1:
            return kinds, {}, optional
        annotation = kinds[0]
    if get_origin(annotation) is Annotated:
        annotation, *inner = get_args(annotation)
        metadata = metadata + inner
    bounds: dict[str, float] = {}
    for item in metadata:
        for one in item.metadata if isinstance(item, FieldInfo) else [item]:
            for key, _ in _BOUNDS:
                if getattr(one, key, None) is not None:
                    bounds[key] = getattr(one, key)
    return [annotation], bounds, optional


def _inner(kind: Any, step: int | str) -> tuple[Any, list[Any]] | None:
    """Annotation and metadata of what `step` names inside a value of this kind, if it is known."""
    if _is_model(kind):
        field = kind.model_fields.get(step)
        return None if field is None else (field.annotation, list(field.metadata))
    if get_origin(kind) is list:
        return get_args(kind)[0], []
    if get_origin(kind) is dict and step != "[key]":
        return get_args(kind)[1], []
    return None


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _kind(kind: Any, *, many: bool = False) -> str:
    if get_origin(kind) is Literal:
        return f"one of {', '.join(get_args(kind))}"
    if get_origin(kind) is list:
        return f"a list of {_expected(get_args(kind)[0], [], many=True)}"
    if get_origin(kind) is dict:
        inner = get_args(kind)[1]
        if inner is Any:
            return "settings" if many else "a mapping of settings"
        return f"a mapping of names to {_expected(inner, [], many=True)}"
    if _is_model(kind):
        return f"a mapping with any of {', '.join(kind.model_fields)}"
    names: dict[Any, tuple[str, str]] = {
        int: ("a whole number", "whole numbers"),
        float: ("a number", "numbers"),
        bool: ("true or false", "true or false"),
    }
    return names.get(kind, ("a text", "texts"))[many]


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
