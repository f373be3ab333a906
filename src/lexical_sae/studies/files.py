"""Study files: YAML with a `study` that names its kind; whatever is wrong gets one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ValidationError

from lexical_sae.studies.long_context_config import LongContextConfig
from lexical_sae.studies.surgery_config import SurgeryConfig
from lexical_sae.studies.wic_config import WicConfig
from lexical_sae.text.yaml_text import read_yaml
from lexical_sae.training.assignments import laid_over, read_assignments
from lexical_sae.training.expectations import nearest_key

STUDIES: dict[str, type[BaseModel]] = {
    "long_context": LongContextConfig,
    "surgery": SurgeryConfig,
    "wic": WicConfig,
}
QUICK = "quick"  # the part of a file that makes a small study of it


def load_study(path: Path, assignments: Sequence[str] = (), *, quick: bool = False) -> BaseModel:
    """The config of a study: the file, its `quick` part if wanted, then KEY=VALUE assignments."""
    if not path.is_file():
        raise ValueError(f"{path} was not found; expected a YAML file with a study.")
    try:
        found = read_yaml(path.read_text(encoding="utf-8-sig"), str(path))
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8 text; expected a YAML file.") from None
    if not isinstance(found, dict):
        raise ValueError(f"{path} holds no mapping; expected study: and its settings.")
    small = found.pop(QUICK, None)
    if quick and not isinstance(small, dict):
        raise ValueError(f"{path} has no quick part; expected quick: with smaller settings.")
    found = laid_over(found, small) if quick else found
    given = laid_over(found, read_assignments(assignments))
    kind = given.get("study")
    if not isinstance(kind, str) or kind not in STUDIES:
        raise ValueError(f"{path}: study is {kind!r}; {nearest_key(kind, STUDIES)}")
    try:
        return STUDIES[kind].model_validate(given)
    except ValidationError as error:
        raise ValueError(f"{path}: {_sentence(error, STUDIES[kind])}") from None


def _sentence(error: ValidationError, model: type[BaseModel]) -> str:
    """The first thing that is wrong."""
    first = error.errors()[0]
    place = ".".join(map(str, first["loc"]))
    if first["type"] == "extra_forbidden":
        known = _keys_at(model, [str(part) for part in first["loc"][:-1]])
        return f"unknown key {place!r}; {nearest_key(first['loc'][-1], known)}"
    message = str(first["msg"]).removeprefix("Value error, ")
    return f"{place}: {message}." if place else message


def _keys_at(model: type[BaseModel], path: Sequence[str]) -> list[str]:
    """The keys that the mapping at `path` may have."""
    from lexical_sae.training.expectations import part_of

    for key in path:
        inner = part_of(model.model_fields[key])
        if inner is None:
            return []
        model = inner
    return list(model.model_fields)
