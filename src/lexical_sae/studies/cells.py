"""A cell of a grid: one training run, by its dataset, backbone, arm and seed."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lexical_sae.training.config import DEFAULT_BACKBONE, RunConfig, resolve_config


@dataclass(frozen=True)
class Cell:
    """`settings` are as `lexical-sae train` takes them, with all that the arm changes."""

    dataset: str
    backbone: str
    arm: str
    seed: int
    settings: Mapping[str, Any]
    kept: Path | None = None  # where it is kept, of a run in no grid

    @property
    def title(self) -> str:
        backbone = () if self.backbone == DEFAULT_BACKBONE else (short_name(self.backbone),)
        return ", ".join((self.dataset, *backbone, self.arm, f"seed {self.seed}"))

    @property
    def path(self) -> Path:
        """Where it is kept, in the study's folder."""
        if self.kept is not None:
            return self.kept
        names = (folder_name(self.dataset), backbone_folder(self.backbone), folder_name(self.arm))
        return Path("cells", *names, f"seed{self.seed}")

    def config(self) -> RunConfig:
        """All settings; an arm that this version cannot train is a ValueError."""
        return resolve_config(self.settings, where=self.title)


def run_cell(
    settings: Mapping[str, Any], where: str, arm: str | None = None, *, kept: Path
) -> Cell:
    """The cell of one run, for the plan of a study that is no grid and keeps it in `kept`."""
    config = resolve_config(settings, where=where)
    arm = config.recipe if arm is None else arm
    seed = config.settings.seed
    return Cell(config.dataset, config.backbone, arm, seed, settings, kept)


def short_name(backbone: str) -> str:
    """A backbone for tables: without `wheel:`, and of a path the last part, or two where that is
    only `model`, as the folder of a run has it."""
    name = backbone.removeprefix("wheel:")
    path = Path(name)
    if not path.is_absolute():
        return name
    return "/".join(path.parts[-2:]) if path.name == "model" else path.name


def backbone_folder(backbone: str) -> str:
    """Of a path with a hash of all of it: many a path ends like another."""
    name = short_name(backbone)
    whole = backbone.removeprefix("wheel:")
    return folder_name(name) if name == whole else folder_name(name, whole)


def folder_name(name: str, whole: str | None = None) -> str:
    """A name that every file system takes; names that differ give folders that differ. `whole` is
    what `name` is short for."""
    plain = re.sub(r"[^\w.=+-]+", "-", name).strip(".-")[:60]
    if plain == name and whole is None:
        return plain
    return f"{plain}-{hashlib.sha256((whole or name).encode()).hexdigest()[:6]}"
