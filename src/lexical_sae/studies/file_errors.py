"""What is wrong with a study file, as one sentence: what was found, and what was expected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from lexical_sae.training.expectations import expectation_at, hint, nearest_key, part_of, shown


def sentence(error: ValidationError, model: type[BaseModel], given: Mapping[str, Any]) -> str:
    """The first thing that is wrong with what was given."""
    first = error.errors(include_url=False)[0]
    path = first["loc"]
    place = ".".join(map(str, path))
    if first["type"] == "extra_forbidden":
        known = _keys_at(model, [str(part) for part in path[:-1]])
        return _ended(f"unknown key {place!r}; {nearest_key(path[-1], known)}")
    if first["type"] == "value_error":
        message = str(first["ctx"]["error"])
        named = not place or message.startswith(place)
        return _ended(message if named else f"{place}: {message}")
    if first["type"] == "invalid_key" or path[-1] == "[key]":
        key = path[-2] if path[-1] == "[key]" else path[-1]
        return f"{shown(key)} is given as a key; expected a text (put it in quotes)."
    steps, expected = expectation_at(model, path)
    place = ".".join(map(str, path[:steps]))
    if first["type"] == "missing":
        return f"{place} is missing; expected {expected}."
    value = first["input"] if steps == len(path) else _value_at(given, path[:steps])
    return f"{place} is {shown(value)}; expected {expected}{hint(value, expected)}."


def _ended(message: str) -> str:
    return message if message.endswith((".", "?", "!")) else f"{message}."


def _value_at(given: Any, path: Sequence[int | str]) -> Any:
    for step in path:
        given = given[step]
    return given


def _keys_at(model: type[BaseModel], path: Sequence[str]) -> list[str]:
    """The keys that the mapping at `path` may have."""
    for key in path:
        inner = part_of(model.model_fields[key])
        if inner is None:
            return []
        model = inner
    return list(model.model_fields)
