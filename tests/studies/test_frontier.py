"""The sparsity frontier: targets as arms, and the dial of one model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lexical_sae.report.finding import Finding, FindingTable
from lexical_sae.studies.arms_table import Arm, arms_of
from lexical_sae.studies.cells import Cell
from lexical_sae.studies.frontier_finding import frontier_finding
from lexical_sae.studies.grid import Outcome
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


def turned(seed: int, backbone: str, *rows: tuple[float, float, float]) -> Outcome:
    """A run with a dial: factors of the thresholds, open words, accuracy."""
    dial = Finding(
        tables=(FindingTable("Along the dial", ("times", "open words", "accuracy, %"), rows),),
        notes=("2 texts; nothing is trained again",),
    )
    found = {"right": "1101", "accuracy": 0.75, "open_words": 8.0, "dial": dial.to_dict()}
    return Outcome(Cell("d", backbone, "8", seed, {}), found)


def test_both_curves_are_means_over_seeds() -> None:
    outcomes = [
        turned(0, "one", (0.5, 20.0, 80.0), (1.0, 8.0, 70.0), (2.0, 1.0, 50.0)),
        turned(1, "one", (0.5, 10.0, 90.0), (1.0, 6.0, 50.0)),  # a factor less
        turned(0, "two", (1.0, 4.0, 60.0)),
    ]
    arms: list[Arm] = arms_of(outcomes)
    found = frontier_finding(arms, outcomes, FindingTable("t", (), ()), 8)
    name = "thresholds of the model for 8 turned"
    assert [curve.title for curve in found.curves] == ["Frontier on d, one", "Frontier on d, two"]
    assert [table.title for table in found.tables[1:]] == [f"d, one: {name}", f"d, two: {name}"]
    assert found.tables[1].rows == ((0.5, 15.0, 85.0), (1.0, 7.0, 60.0))
    assert found.curves[0].lines[name] == ((7.0, 60.0), (15.0, 85.0))
    assert found.curves[0].lines["trained for each number"] == ((8.0, 75.0),)
    assert "mean of 2 seeds, each on 2 texts" in found.notes[1]
    assert found.notes[1].endswith("on all 4 rows.")
    assert "mean of 1 seed, each on 2 texts" in found.notes[2]
