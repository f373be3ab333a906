"""Models from the Hugging Face hub: asked once, briefly, and then from the cache."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lexical_sae.text.hub import hub_answers

# What a model needs; weights as safetensors only, so that nothing is unpickled.
FILES = ["*.json", "*.safetensors", "*.txt", "*.model"]


def model_folder(name: str, **options: Any) -> Path:
    """A folder that stands here, or the hub's copy of the model `name`."""
    if Path(name).is_dir():
        return Path(name)
    from huggingface_hub import snapshot_download

    try:
        reachable = hub_answers(name, "model")
        return Path(
            snapshot_download(name, allow_patterns=FILES, local_files_only=not reachable, **options)
        )
    except Exception as error:
        # whatever the hub's client raises, the answer is the same: no model by this name
        raise ValueError(
            f"{name!r} is neither a folder here nor a model that the hub gives "
            f"({type(error).__name__}); expected a folder, or a hub name with the hub in reach."
        ) from error
