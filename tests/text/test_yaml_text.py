"""YAML: plain values are what they look like, and bad files are told in one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lexical_sae.text.yaml_text import read_yaml
from lexical_sae.training.config import load_config


def file_error(tmp_path: Path, text: str | bytes) -> str:
    file = tmp_path / "run.yaml"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(ValueError, match=r"run\.yaml") as caught:
        load_config(file)
    assert len(str(caught.value).splitlines()) == 1
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("3e-4", 3e-4), ("1e5", 1e5), (".5", 0.5), ("1_000", 1000), ("1.", 1.0), ("-2", -2)),
        *(("3.0e-05", 3e-5), ("1E3", 1e3), ("+.5e1", 5.0), ("010", 10), ("0", 0), ("1_0.5", 10.5)),
        *(("true", True), ("False", False), ("null", None), ("~", None), ("", None)),
        *(("yes", "yes"), ("no", "no"), ("on", "on"), ("off", "off"), ("y", "y")),
        *(("1:30", "1:30"), ("2020-01-01", "2020-01-01"), ("0x10", "0x10"), ("e5", "e5")),
        *((".inf", float("inf")), ("-.Inf", -float("inf")), ("'3e-4'", "3e-4"), ("_1", "_1")),
        *((".", "."), ("1e", "1e"), ("1e5x", "1e5x"), ("=", "=")),
    ],
)
def test_plain_scalars_are_what_they_look_like(text: str, value: Any) -> None:
    found = read_yaml(f"key: {text}", "x")["key"]
    assert found == value
    assert type(found) is type(value)


def test_learning_rates_are_numbers(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text("dataset: sst2\nlearning_rate: 3e-4\nweight_decay: 1e-2\n")
    assert load_config(file).settings.learning_rate == 3e-4


def test_a_byte_order_mark_and_windows_lines_are_fine(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_bytes(b"\xef\xbb\xbfdataset: sst2\r\nepochs: 3\r\n")
    assert load_config(file).settings.epochs == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "dataset: a\nepochs: 1\ndataset: b\n",
            "line 3: 'dataset' is given twice, first on line 1",
        ),
        ("dataset: a\nmodel: {gate: jump, gate: shift}", "line 2: 'gate' is given twice"),
        ("dataset: a\nmodel:\n\tgate: jump", "line 3: found a tab where YAML wants spaces"),
        ("dataset: [a", "line 1"),
        ("dataset: a\n  epochs: 3", "line 2"),
        ("dataset: 'a", "line 1"),
        ("- a\n- b", "holds ['a', 'b']; expected keys and values"),
        ("just text", "holds 'just text'"),
        ("", "dataset is missing"),
        ("# nothing\n", "dataset is missing"),
        ("dataset: a\x01", "line 1: character 0x0001 is not allowed"),
        ("a: 1\n---\nb: 2", "line 2"),
        ("dataset: !!python/name:os.system", "could not determine a constructor"),
        ("dataset: !mine a", "could not determine a constructor"),
        ("epochs: !!int x", "does not fit its !! tag"),
        ("epochs: !!bool x", "does not fit its !! tag"),
        ("epochs: !!timestamp x", "does not fit its !! tag"),
        ("dataset: *a", "undefined alias"),
        ("? [a]\n: 1", "unhashable key"),
        ("[" * 3000, "nested too deeply"),
        ("dataset: &a [*a]", "dataset is [[[...]]] in"),
        ("completeness: &a {weight: *a}\ndataset: a", "completeness.weight is {"),
        (b"\xff\xfe\x00", "not UTF-8"),
        ("seed: " + "1" * 5000, "line 1: found a number of 5000 digits"),
    ],
)
def test_files_that_are_no_config(text: str | bytes, message: str, tmp_path: Path) -> None:
    found = file_error(tmp_path, text)
    assert message in found
    assert len(found) < 1_000


def test_files_that_are_no_files(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no\.yaml does not exist; expected a YAML file"):
        load_config(tmp_path / "no.yaml")
    with pytest.raises(ValueError, match="cannot be read"):
        load_config(tmp_path)


def test_aliases_and_merge_keys_work(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text("dataset: &n a\nbackbone: *n\nmodel: {<<: {gate: jump}, head_width: 8}\n")
    config = load_config(file)
    assert config.backbone == "a"
    assert (config.settings.model.gate, config.settings.model.head_width) == ("jump", 8)


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(), st.text(alphabet="ab:{}[]-? \n\t'\"!&*#0.<|>%@,e_~")))
def test_any_text_is_read_or_told_in_one_sentence(text: str) -> None:
    message = ""
    try:
        read_yaml(text, "run.yaml")
    except ValueError as error:
        message = str(error)
    assert len(message.splitlines()) <= 1
    assert not message or message.startswith("run.yaml ")
