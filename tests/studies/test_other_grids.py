"""Datasets and recipes in one table; heads compared."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from lexical_sae.studies.bcos_ablation import HEADS, BcosConfig
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
    figures = found["parts"]["Grid"]["dots"]
    assert [[dot["name"] for dot in figure["dots"]] for figure in figures] == [
        ["dense twin", "own"]
    ] * 2
    assert len(list((tmp_path / "out" / "figures").glob("recipes-on-*.svg"))) == 2
    steps = [cell["steps"] for cell in found["cells"]]
    assert steps == [6, 6, 3, 3]


def test_heads(files: StudyFiles, tmp_path: Path) -> None:
    file = files.write("bcos_ablation", heads=["bcos, depth 2", "bcos, depth 3", "linear"])
    shown, _ = run("run", file, "--output", tmp_path)
    assert "the largest residual of a sum is" in shown
    assert "without a word the logit moves as its contribution says" in shown
    found = json.loads((tmp_path / "results.json").read_text())
    assert [cell["arm"] for cell in found["cells"]] == list(HEADS)
    table = found["parts"]["Heads"]["tables"][0]
    rows = {row[0]: dict(zip(table["columns"], row, strict=True)) for row in table["rows"]}
    linear = rows["linear"]
    assert linear["error of removal"] < 1e-5  # where removal is additive, nothing is off
    assert linear["correlation of removal"] > 0.9999
    assert all(row["error of removal"] is not None for row in rows.values())
    dots = found["parts"]["Heads"]["dots"][0]["dots"]
    assert [dot["name"] for dot in dots] == list(HEADS)
    assert (tmp_path / "figures").is_dir()


def test_every_head_can_be_trained() -> None:
    for cell in BcosConfig(train={"dataset": "sst2"}).cells():
        assert cell.config().settings.model.head == HEADS[cell.arm]["model"]["head"]
