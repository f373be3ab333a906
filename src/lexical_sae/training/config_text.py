"""Configs and recipes as YAML for people: every value, in the order of `Settings`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lexical_sae.text.yaml_text import write_yaml

# The heading stands before the setting named beside it.
HEADINGS = {
    "target_words": "what is wanted",
    "completeness": "the objective (null: off)",
    "epochs": "the run",
    "optimizer": "the optimiser",
    "model": "the model",
}


def run_text(run: Mapping[str, Any], settings: Mapping[str, Any]) -> str:
    """A whole config: the run's own keys, then its settings."""
    return f"{write_yaml(run)}{settings_text(settings)}"


def settings_text(settings: Mapping[str, Any]) -> str:
    blocks = []
    for name, value in settings.items():
        if name in HEADINGS:
            blocks.append(f"\n# {HEADINGS[name]}\n")
        if isinstance(value, Mapping) and name != "model":  # a term fits on one line
            blocks.append(f"{name}: {write_yaml(value, one_line=True)}")
        else:
            blocks.append(write_yaml({name: value}))
    return "".join(blocks)
