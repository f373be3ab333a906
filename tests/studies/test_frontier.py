"""The sparsity frontier: targets as arms, and the dial of one model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lexical_sae.studies.sparsity_frontier import FrontierConfig
from tests.command_line import run
from tests.studies.conftest import StudyFiles


def test_targets_are_arms_that_start_with_more_words() -> None:
    config = FrontierConfig(train={"dataset": "sst2"}, target_words=[512, 8])
    found = {cell.arm: cell.config().settings for cell in config.cells()}
    assert [(s.target_words, s.start_words) for s in found.values()] == [(8, 400), (512, 1024)]


def test_the_model_to_be_turned_is_one_of_them() -> None:
    config = FrontierConfig(train={"dataset": "sst2"}, target_words=[512, 8], turned=8)
    assert config.dial == 8
    with pytest.raises(ValueError, match=r"turned is 100; expected one of target_words \(8, 512\)"):
        FrontierConfig(train={"dataset": "sst2"}, target_words=[512, 8], turned=100)
    with pytest.raises(
        ValueError, match=r"datasets.sst2.start_words is given; expected it in train"
    ):
        FrontierConfig(datasets={"sst2": {"start_words": 90}})


def test_a_frontier_and_a_dial(files: StudyFiles, tmp_path: Path) -> None:
    file = files.write("sparsity_frontier", target_words=[3, 8])
    shown, _ = run("run", file, "--output", tmp_path)
    assert "8 words wanted" in shown
    found = json.loads((tmp_path / "results.json").read_text())
    part = found["parts"]["Frontier"]
    lines = part["curves"][0]["lines"]
    assert len(lines["trained for each number"]) == 2
    assert len(lines["thresholds of the model for 8 turned"]) == 7
    assert [row[0] for row in part["tables"][0]["rows"]] == ["3", "8"]
    assert "dial" not in found["cells"][0]
    figure = next((tmp_path / "figures").iterdir()).read_text()
    assert "trained for each number" in figure
    _, error = run("run", file, "--set", "target_words=[8, 8]", code=2)
    assert "expected one or more numbers, each once" in error
