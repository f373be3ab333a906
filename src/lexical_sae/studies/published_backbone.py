"""Configs of backbones that are not here: a plan needs their shape, never their weights.

`published_backbones.json` holds those that experiments/paper names, each with its source.
"""

from __future__ import annotations

import json
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from transformers import AutoConfig, PretrainedConfig

from lexical_sae.text.hub import hub_answers

FILE = Path(__file__).with_name("published_backbones.json")


@cache
def published() -> dict[str, dict[str, Any]]:
    """By hub name: the part of a config that sizes follow from, and its source."""
    found: dict[str, dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


@cache
def published_config(backbone: str) -> PretrainedConfig | None:
    """From the file, else from the hub if it answers (config.json alone, and not kept); None if
    neither knows it."""
    known = {name.split("/")[1]: name for name in published()}  # older names have no owner
    if backbone in published() or backbone in known:
        settings = dict(published()[known.get(backbone, backbone)]["config"])
        return AutoConfig.for_model(settings.pop("model_type"), **settings)
    if Path(backbone).exists() or not hub_answers(backbone, "model"):
        return None
    try:
        with tempfile.TemporaryDirectory(prefix="lexical-sae-") as scratch:
            found: PretrainedConfig = AutoConfig.from_pretrained(backbone, cache_dir=scratch)
            return found
    except (OSError, ValueError):  # the hub has no such model, or transformers no such family
        return None
