"""Study files: YAML with a `study` that names its kind; whatever is wrong gets one sentence."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from lexical_sae.studies.file_errors import sentence
from lexical_sae.studies.registry import STUDIES
from lexical_sae.studies.strict import StudyConfig
from lexical_sae.text.yaml_text import read_yaml
from lexical_sae.training.assignments import ASSIGNED, laid_over, read_assignments
from lexical_sae.training.expectations import nearest_key, shown

QUICK = "quick"  # the part of a file that makes a small study of it
FALLBACK = "fallback"  # the file to run where the datasets of this one are not to be had
FOLDER = Path("experiments")


def load_study(
    path: Path,
    assignments: Sequence[str] = (),
    *,
    quick: bool = False,
    seeds: int | None = None,
) -> StudyConfig:
    """The config of a study: the file, its `quick` part if wanted, then what the command gives."""
    found = read_study(path)
    if "study" not in found:
        raise ValueError(
            f"{path} names no study; expected study: and one of {', '.join(STUDIES)}. A file with "
            f"the settings of one run is for: lexical-sae train {path} --output FOLDER."
        )
    found.pop(FALLBACK, None)
    small = found.pop(QUICK, None)
    if small is not None and not isinstance(small, Mapping):
        raise ValueError(f"{path}: quick is {shown(small)}; expected settings that differ.")
    if quick and small is None:
        raise ValueError(f"{path} has no quick part; expected quick: with smaller settings.")
    forms = {str(path): found}
    if small is not None:
        forms[f"{path}, its quick form"] = {**laid_over(found, small), QUICK: True}
    # a file is right or wrong as a whole; what the command gives is for the form that is wanted
    configs = [_config(form, where) for where, form in forms.items()]
    given = read_assignments(assignments)
    if seeds is not None:
        given["seeds"] = seeds
    wanted = -1 if quick else 0
    if not given:
        return configs[wanted]
    options = [ASSIGNED] * bool(assignments) + ["--seeds"] * (seeds is not None)
    form = _with_given(list(forms.values())[wanted], given)
    return _config(form, f"{path} with {' and '.join(options)}")


def _with_given(form: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """A list of datasets chooses: those that the file names keep the settings it has for them."""
    names, known = given.get("datasets"), form.get("datasets")
    if isinstance(names, str):
        names = [names]
    if isinstance(names, list) and isinstance(known, Mapping):
        form = {**form, "datasets": {}}
        if len({*map(str, names)}) == len(names):  # one given twice is told by the check
            names = {str(name): known.get(name) for name in names}
    return laid_over(form, given if names is None else {**given, "datasets": names})


def default_folder(path: Path, *, quick: bool = False) -> Path:
    """Where the result of a study goes. Below a folder `experiments` the path is kept, so that
    files of the same name have folders of their own."""
    parts = Path(os.path.abspath(path)).with_suffix("").parts  # not resolved: links keep names
    below = len(parts) - 1
    if FOLDER.name in parts[:-1]:
        below = max(i for i, part in enumerate(parts[:-1]) if part == FOLDER.name) + 1
    return Path("runs", *parts[below:-1], f"{parts[-1]}{'-quick' * quick}")


def fallback_of(path: Path) -> Path | None:
    """The study to run instead where this one's datasets are not to be had, if the file names one,
    by a path relative to itself."""
    name = read_study(path).get(FALLBACK)
    if name is None:
        return None
    other = path.parent / str(name)
    if not isinstance(name, str) or not other.is_file():
        raise ValueError(
            f"{path}: fallback is {shown(name)}; expected the name of a study file beside it."
        )
    if FALLBACK in read_study(other):
        raise ValueError(f"{path}: fallback is {name}, which has one too; expected one that ends.")
    return other


def read_study(path: Path) -> dict[str, Any]:
    """What the file says, unchecked."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder; expected a YAML file with a study.")
    if not path.is_file():
        raise ValueError(f"{path} was not found; expected a YAML file with a study.")
    try:
        found = read_yaml(path.read_text(encoding="utf-8-sig"), str(path))
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8 text; expected a YAML file.") from None
    if not isinstance(found, dict):
        raise ValueError(f"{path} holds no mapping; expected study: and its settings.")
    return found


def study_files(folder: Path = FOLDER) -> dict[Path, str]:
    """Every file below `folder` that names a study, with its kind."""
    kinds = {}
    for path in sorted(folder.rglob("*.yaml")):
        try:
            kind = read_study(path).get("study")
        except (ValueError, OSError):
            continue
        if isinstance(kind, str):
            kinds[path] = kind
    return kinds


def _config(given: Mapping[str, Any], where: str) -> StudyConfig:
    kind = given.get("study")
    if not isinstance(kind, str) or kind not in STUDIES:
        raise ValueError(f"{where}: study is {shown(kind)}; {nearest_key(kind, STUDIES)}")
    model = STUDIES[kind].config
    try:
        # strict: true is no number, and "3" is no 3
        return model.model_validate(given, strict=True)
    except ValidationError as error:
        raise ValueError(f"{where}: {sentence(error, model, given)}") from None
