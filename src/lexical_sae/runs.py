"""Folders that hold a model: a run's folder, or the model's own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lexical_sae.model.lexical_sae import LexicalSAE
    from lexical_sae.training.config import RunConfig


def model_folder_of(run: Path) -> Path:
    """``run/model`` of a run's folder, or ``run`` itself if it is a model's folder."""
    for folder in (run / "model", run):
        if (folder / "config.json").is_file():
            return folder
    found = "holds neither" if run.is_dir() else "is a file" if run.exists() else "was not found"
    raise ValueError(
        f"{run} {found}; expected the folder of a run (with model/config.json) or of a saved model "
        "(with config.json)."
    )


def config_of_run(run: Path, option: str = "--dataset") -> RunConfig:
    """How a run was trained and on what, by its config.yaml; `option` names the data otherwise."""
    from lexical_sae.training.config import load_config

    config = run / "config.yaml"
    if not config.is_file():
        raise ValueError(f"{run} has no config.yaml that names its data; give {option}.")
    return load_config(config)


def load_run(
    run: Path, topk_per_position: int | None = None, windows: bool | None = None
) -> LexicalSAE:
    """The model of a run, of a model's folder, or of the hub (owner/name); options that are
    None are as they were saved."""
    from lexical_sae.model.lexical_sae import LexicalSAE

    on_hub = not run.exists() and not run.is_absolute() and len(run.parts) == 2  # owner/name
    model = LexicalSAE.from_pretrained(run.as_posix() if on_hub else model_folder_of(run))
    if topk_per_position is not None:
        model.keep_per_position(topk_per_position)
    if windows is not None:
        model.read_windows(windows)
    return model
