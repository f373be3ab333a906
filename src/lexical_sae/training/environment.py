"""Where a run took place, as far as it can matter to its numbers, and JSON files that any reader
takes.

Nothing here tells who ran it: a run's folder is meant to be handed on, so it holds no host name,
no user name and no path.
"""

from __future__ import annotations

import json
import math
import os
import platform
import subprocess
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from lexical_sae import __version__
from lexical_sae.model.screen import low_precision_is_fast
from lexical_sae.text.write_rows import replacing
from lexical_sae.training.distributed import process_count

PACKAGES = ("torch", "transformers", "accelerate", "tokenizers", "numpy", "schedulefree")
PACKAGE_FOLDER = Path(__file__).resolve().parents[1]


def environment(seeds: Mapping[str, int] | None = None) -> dict[str, Any]:
    """What a second run needs to know to come to the same numbers; `seeds` by their names."""
    return {
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",  # a kernel's name can be private
        "cpus": os.cpu_count(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),  # rounding differs with it
        "native_bf16": low_precision_is_fast(),  # what `precision: auto` goes by on a CPU
        "threads": torch.get_num_threads(),
        "accelerators": [
            torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())
        ],
        "processes": process_count(),
        "seeds": dict(seeds or {}),
        "versions": {"lexical_sae": __version__, **{name: _version(name) for name in PACKAGES}},
        "git": git_state(PACKAGE_FOLDER),
    }


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def git_state(folder: Path) -> dict[str, Any] | None:
    """The commit of the working tree that `folder` belongs to, and whether `folder` has changes
    (new files count). None outside of one, and whenever git is missing, slow or unwilling.

    An installed package often lies inside somebody else's repository (project/.venv): that commit
    says nothing about this code, so the folder's own `__init__.py` must be tracked.
    """
    try:
        _git(folder, "ls-files", "--error-unmatch", "__init__.py")
        return {
            "commit": _git(folder, "rev-parse", "--short=12", "HEAD").strip(),
            "dirty": bool(_git(folder, "status", "--porcelain", "--", ".").strip()),
        }
    except (OSError, subprocess.SubprocessError, ValueError):
        return None


def _git(folder: Path, *arguments: str) -> str:
    # GIT_DIR and the like, set inside a hook, would point to another repository
    surroundings = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    return subprocess.run(
        ["git", "-C", str(folder), *arguments],
        env={**surroundings, "GIT_OPTIONAL_LOCKS": "0"},  # a look must not write the index
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
        timeout=10,
    ).stdout


def plain_values(value: Any) -> Any:
    """`value` in the types of JSON. A number of numpy or torch becomes Python's; NaN and the
    infinities become None.

    JSON has no NaN: Python would write a word on which most readers stop. To refuse instead would
    lose the results of hours to one undefined number, and null says just that: no number here.
    """
    if isinstance(value, Mapping):
        return {str(key): plain_values(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_values(item) for item in value]
    if not isinstance(value, (str, int, float)) and hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_json(path: str | Path, value: Any) -> Path:
    """`value` as indented JSON, keys in their given order; the file appears whole or not at all."""
    path = Path(path)
    text = json.dumps(plain_values(value), indent=2, ensure_ascii=False, allow_nan=False)
    with replacing(path) as scratch:
        scratch.write_text(text + "\n", encoding="utf-8")
    return path
