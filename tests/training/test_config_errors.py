"""Configs: what each mistake is told, always in one sentence."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from lexical_sae.training.config import FIELDS, RunConfig, resolve_config
from lexical_sae.training.expectations import part_of, shown
from lexical_sae.training.recipes import RECIPES


def error_of(mapping: Any, overrides: Any = None) -> str:
    with pytest.raises(ValueError, match=r"\S") as caught:
        resolve_config(mapping, overrides, where="run.yaml")
    assert not isinstance(caught.value, ValidationError)
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    assert message[-1] in ".?"
    return message


@pytest.mark.parametrize("key", sorted(set(FIELDS) - {"dataset"}))
def test_a_misspelt_key_is_told_the_right_one(key: str) -> None:
    message = error_of({"dataset": "a", f"{key}x": 1})
    assert message == f"'{key}x' in run.yaml is no setting; did you mean {key!r}?"


PARTS = {name: part for name, field in FIELDS.items() if (part := part_of(field))}
INNER = [(name, key) for name, part in PARTS.items() for key in part.model_fields]


@pytest.mark.parametrize(("part", "key"), INNER)
def test_a_misspelt_key_of_a_part_is_told_the_right_one(part: str, key: str) -> None:
    message = error_of({"dataset": "a", part: {f"{key}x": 1}})
    assert message == f"'{key}x' in run.yaml is no key of {part}; did you mean {key!r}?"


@pytest.mark.parametrize(
    ("mapping", "parts"),
    [
        ({"gate": "jump"}, ["'gate' in run.yaml is no setting; it belongs under model."]),
        ({"weight": 1}, ["belongs under completeness, separation"]),
        ({"qqq": 1}, ["'qqq'", "known: dataset, text_column", "model."]),
        ({"model": {"qqq": 1}}, ["no key of model; known: dictionary,"]),
        ({"settings": {}}, ["'settings' in run.yaml is no setting"]),
        ({None: 1}, ["null in run.yaml is no setting"]),
        ({("a", 1): 1}, ["is no setting"]),
        ({"model": {1: 1}}, ["1 in run.yaml is no key of model"]),
        ({"a\nb": 1}, [r"'a\nb' in run.yaml"]),
        ({"x" * 100_000: 1}, ["..."]),
    ],
)
def test_other_unknown_keys(mapping: Any, parts: list[str]) -> None:
    message = error_of({"dataset": "a", **mapping})
    for part in parts:
        assert part in message
    assert len(message) < 2_000


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"epochs": True},
            "epochs is true in run.yaml; expected a number above 0 and at most 1,000.",
        ),
        ({"epochs": 0}, "epochs is 0 in run.yaml; expected a number above 0"),
        ({"epochs": "3"}, "epochs is '3' in run.yaml"),
        ({"epochs": float("nan")}, "epochs is nan in run.yaml"),
        ({"epochs": float("inf")}, "epochs is inf in run.yaml"),
        ({"epochs": 10**400}, "epochs is a number of 1329 bits in run.yaml"),
        ({"epochs": None}, "epochs is null in run.yaml"),
        ({"seed": True}, "seed is true in run.yaml; expected a whole number of at least 0"),
        ({"seed": 1e3}, "seed is 1000.0 in run.yaml; expected a whole number of at least 0 and "),
        ({"seed": 1e3}, "(write 1000)."),
        ({"seed": 2**32}, "below 4,294,967,296."),
        ({"constraint": "yes"}, "constraint is 'yes' in run.yaml; expected true or false."),
        ({"constraint": 1}, "constraint is 1 in run.yaml; expected true or false."),
        ({"schedule": "cosin"}, "expected one of cosine, linear, constant."),
        ({"batch_size": 0}, "expected a whole number of at least 1 and at most 4,096, or null."),
        ({"target_accuracy": 92}, "expected a number above 0 and below 1, or null."),
        ({"completeness": {"form": "mse"}}, "completeness.form is 'mse' in run.yaml; expected one"),
        ({"completeness": {"weight": True}}, "completeness.weight is true in run.yaml"),
        (
            {"completeness": True},
            "completeness is true in run.yaml; expected a mapping with any of",
        ),
        ({"completeness": [1]}, "completeness is [1] in run.yaml"),
        ({"model": None}, "model is null in run.yaml; expected a mapping with any of dictionary"),
        ({"model": {"head_width": 1.5}}, "model.head_width is 1.5 in run.yaml; expected a whole"),
        ({"dataset": 20}, "dataset is 20 in run.yaml; expected a text (put it in quotes)."),
        ({"dataset": " "}, "dataset is ' '; expected a name."),
        ({"dataset": "\ud800"}, "UTF-8"),
        ({"dataset": None}, "dataset is null in run.yaml"),
        ({"text_column": "a", "label_column": "a"}, "both 'a'; expected two columns."),
        ({"train_rows": 0}, "train_rows is 0 in run.yaml; expected a whole number of at least 1"),
        ({"validation_fraction": 0.6}, "expected a number above 0 and at most 0.5."),
        ({"recipe": "lexicalsae"}, "recipe is 'lexicalsae'; did you mean 'lexical-sae'?"),
        ({"recipe": "zzz"}, "known: default, tagging, cis, lexical-sae, cajt."),
        ({"recipe": ["cis"]}, "recipe is ['cis'] in run.yaml; expected a text."),
        ({"epochs": 0, "seed": -1, "model": {"gate": 1}}, "(2 more wrong)."),
    ],
)
def test_wrong_values_get_one_sentence(values: dict[str, Any], message: str) -> None:
    assert message in error_of({"dataset": "a", **values})


def test_a_dataset_is_needed_and_a_mapping_too() -> None:
    assert error_of({}) == "dataset is missing in run.yaml; expected a text."
    assert error_of([1]) == ("run.yaml holds [1]; expected keys and values, such as dataset: sst2.")
    assert "run.yaml holds 'text'" in error_of("text")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"target_words": 50, "start_words": 20}, "at least target_words"),
        ({"optimizer": "schedule_free", "schedule": "linear"}, "expected schedule: constant"),
        (
            {"optimizer": "schedule_free", "schedule": "constant", "weight_average": 0.9},
            "expected weight_average: null",
        ),
        ({"separation": {"form": "cosine", "learn_margin": True}}, "cosine form has no margin"),
        (
            {"separation": {"form": "contrastive", "margin": 0, "learn_margin": True}},
            "a margin above 0",
        ),
        ({"model": {"head": "linear", "hidden_bias": True}}, "linear head has no hidden layer"),
        ({"completeness": {}, "circuit_fraction": 1}, "a fraction below 1"),
        ({"target_accuracy": 0.9, "constraint": False}, "nothing would hold it"),
        ({"warmup_fraction": 0}, "the bound of the constraint is taken from warm-up"),
        ({"learning_rate": 0.1, "gate_rate_factor": 25}, "gate_rate_factor 25 is 2.5"),
        ({"content": {}, "model": {"positions": "content"}}, "the term has nothing to teach"),
        (
            {
                **{"recipe": "cis", "completeness": None, "separation": None},
                **{"sharpness": None, "sparsity": None},
            },
            "nothing to weigh",
        ),
    ],
)
def test_combinations_without_sense_are_refused(values: dict[str, Any], message: str) -> None:
    found = error_of({"dataset": "a", **values})
    assert found.startswith("run.yaml: ")
    assert "expected" in found
    assert message in found


@pytest.mark.parametrize(
    "values",
    [
        {"warmup_fraction": 1},  # the baseline
        {"warmup_fraction": 0, "constraint": False},
        {"warmup_fraction": 0, "target_accuracy": 0.9},
        {"learning_rate_range_test": True, "dense_twin": True},
        {"target_words": 50, "start_words": 50},
        {"recipe": "cis", "epochs": 3},  # shorter than the patience of the recipe
        {"model": {"gate": "jump", "saturation": "log1p"}},
        {"completeness": None, "circuit_fraction": 1},
    ],
)
def test_combinations_that_make_sense_are_taken(values: dict[str, Any]) -> None:
    resolve_config({"dataset": "a", **values})


def test_a_run_config_checks_itself_too() -> None:
    with pytest.raises(ValueError, match="did you mean 'cajt'"):
        RunConfig(dataset="a", recipe="cjat", settings=RECIPES["cajt"])


def test_a_message_says_whether_the_file_or_the_command_line_is_wrong() -> None:
    assert "epochs is 0 in --set;" in error_of({"dataset": "a"}, {"epochs": 0})
    mixed = {"dataset": "a", "completeness": {"weight": -1}}
    assert "weight is -1 in run.yaml;" in error_of(mixed, {"completeness": {"form": "ce"}})
    assert "'epoch' in --set is no setting" in error_of({"dataset": "a"}, {"epoch": 0})


scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.binary(max_size=3)
)
keys = st.one_of(
    st.sampled_from([*FIELDS, *(key for _, key in INNER)]), st.text(max_size=6), scalars
)
choices = ["kl", "ce", "cosine", "contrastive", "jump", "shift", "sum", "constant", "cis", "adamw"]
values = st.recursive(
    st.one_of(scalars, st.sampled_from(choices), st.floats(0, 1)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=3)),
    max_leaves=8,
)
known = st.dictionaries(st.sampled_from(sorted(FIELDS)), values, max_size=4)


def message_of(call: Callable[[], object]) -> str | None:
    """The message of the ValueError that `call` raises, or None; anything else fails the test."""
    try:
        call()
    except ValidationError as error:
        raise AssertionError("pydantic's own message came through") from error
    except ValueError as error:
        return str(error)
    return None


@settings(max_examples=400, deadline=None)
@given(st.one_of(values, st.dictionaries(keys, values, max_size=4), known), known)
def test_anything_gives_a_config_or_one_sentence(mapping: Any, overrides: Any) -> None:
    for one in (mapping, {"dataset": "a", **overrides}):
        message = message_of(partial(resolve_config, one, overrides, where="run.yaml"))
        if message is not None:
            assert len(message.splitlines()) == 1
            assert len(message) < 2_000


@settings(max_examples=200, deadline=None)
@given(values)
def test_values_are_shown_on_one_short_line(value: Any) -> None:
    text = shown(value)
    assert len(text.splitlines()) <= 1
    assert len(text) < 1_000
