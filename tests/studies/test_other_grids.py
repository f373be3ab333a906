"""Datasets and recipes in one table; heads compared."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from lexical_sae.studies.bcos_ablation import HEADS, BcosConfig
from lexical_sae.training.settings import ModelOptions
from tests.command_line import run
from tests.studies.conftest import StudyFiles


def test_datasets_and_recipes_in_one_table(files: StudyFiles, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(files.data, other)
    datasets = {str(files.data): None, str(other): {"epochs": 0.5}}
    file = files.write("multi_dataset", datasets=datasets, recipes=["dense twin", "own"])
    run("run", file, "--output", tmp_path / "out")
    found = json.loads((tmp_path / "out" / "results.json").read_text())
    rows = found["parts"]["Grid"]["tables"][0]["rows"]
    assert [(row[0], row[2]) for row in rows] == [
        (name, arm) for name in datasets for arm in ("dense twin", "own")
    ]
    steps = [cell["steps"] for cell in found["cells"]]
    assert steps == [6, 6, 3, 3]


def test_heads(files: StudyFiles, tmp_path: Path) -> None:
    file = files.write("bcos_ablation", heads=["linear"])
    shown, _ = run("run", file, "--output", tmp_path)
    assert "the largest residual of a sum is" in shown
    found = json.loads((tmp_path / "results.json").read_text())
    assert [cell["arm"] for cell in found["cells"]] == ["mlp", "linear"]


def test_an_arm_that_this_version_cannot_train_fails_alone() -> None:
    """Until `model.head: bcos` is there, and whatever else a later file may ask for."""
    cells = {cell.arm: cell for cell in BcosConfig(train={"dataset": "sst2"}).cells()}
    assert list(cells) == list(HEADS)
    for name, cell in cells.items():
        if "bcos" in name and "head_depth" not in ModelOptions.model_fields:
            with pytest.raises(ValueError, match="'head_depth' in sst2, bcos"):
                cell.config()
        else:
            assert cell.config().settings.model.head == HEADS[name]["model"]["head"]
