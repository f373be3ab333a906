"""The configs under experiments/ are what they say."""

from __future__ import annotations

from pathlib import Path

import pytest

from lexical_sae.training.config import load_config

FILES = sorted((Path(__file__).parents[1] / "experiments" / "ner").rglob("*.yaml"))


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.name)
def test_it_loads(file: Path) -> None:
    config = load_config(file)
    assert config.recipe == "tagging"
    assert config.settings.model.positions == "words"


def test_a_named_dataset_of_tags_needs_no_recipe(tmp_path: Path) -> None:
    for dataset, recipe in (("conll2003", "tagging"), ("sst2", "default"), ("my.csv", "default")):
        file = tmp_path / "run.yaml"
        file.write_text(f"dataset: {dataset}\n")
        assert load_config(file).recipe == recipe
