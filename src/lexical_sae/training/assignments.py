"""Values given on the command line, KEY=VALUE, laid over what a file says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lexical_sae.text.yaml_text import read_value
from lexical_sae.training.expectations import shown

ASSIGNED = "--set"  # how messages name values that were given on the command line


def read_assignments(assignments: Sequence[str]) -> dict[str, Any]:
    """`["epochs=3", "completeness.weight=2"]` as the mapping that YAML would give."""
    found: dict[str, Any] = {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        keys = name.strip().split(".")
        if not equals or not all(keys) or not text.strip():
            raise ValueError(
                f"{ASSIGNED} {shown(assignment)}: expected KEY=VALUE, e.g. epochs=3, "
                "completeness.weight=2 or anchor=null."
            )
        value = read_value(text, f"the value of {ASSIGNED} {shown(assignment)}")
        for key in reversed(keys):
            value = {key: value}
        found = laid_over(found, value)
    return found


def laid_over(base: Mapping[str, Any], top: Mapping[str, Any]) -> dict[str, Any]:
    """At every level a mapping changes only the keys that it names."""
    merged = dict(base)
    for key, value in top.items():
        under = merged.get(key)
        if isinstance(value, Mapping) and isinstance(under, Mapping):
            value = laid_over(under, value)
        merged[key] = value
    return merged
