"""The study of senses: its runs with senses and without, and what is wrong with a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from lexical_sae.studies.cells import Cell
from lexical_sae.studies.files import load_study
from lexical_sae.studies.grid import Outcome
from lexical_sae.studies.registry import STUDIES
from lexical_sae.studies.wic_config import WITH, WITHOUT, WicConfig
from lexical_sae.studies.wic_task import task_finding, task_line, task_record
from lexical_sae.training.batch_size import LARGEST
from tests.command_line import run
from tests.studies.conftest import StudyFiles

SENSES = Path(__file__).parents[2] / "experiments" / "senses.yaml"


def write(files: StudyFiles, folder: Path, **changes: Any) -> Path:
    train = {
        **{"dataset": str(files.data), "text_column": "text", "label_column": "label"},
        **{"backbone": str(files.backbone), "epochs": 0.5, "target_words": 4, "start_words": 16},
        **{"senses": {"words": ["film"]}, **changes.pop("train", {})},
    }
    file = folder / "study.yaml"
    given = {"study": "wic", "pairs": None, "train": train, **changes}
    file.write_text(yaml.safe_dump(given), encoding="utf-8")
    return file


def test_a_task_without_a_test_split_is_measured_on_validation(
    files: StudyFiles, tmp_path: Path
) -> None:
    data = files.without_test(tmp_path)
    file = write(files, tmp_path, train={"dataset": str(data)}, train_rows=60)
    shown, _ = run("run", file, "--output", tmp_path / "out")
    assert "the mean of 1 seed." in shown
    found = json.loads((tmp_path / "out" / "results.json").read_text())
    assert [(one["senses"], one["split"]) for one in found["task"]] == [
        (False, "validation"),
        (True, "validation"),
    ]
    written = json.loads((tmp_path / "out" / "on-0" / "metrics.json").read_text())
    assert written["rows"] == {"train": 60, "test": 40}
    assert written["batch_size"] == LARGEST
    for one in found["task"]:
        assert len(one["right"]) == 40
        assert one["right"].count("1") / 40 == pytest.approx(one["test"]["accuracy"])
    apart = found["task_difference"]
    values = [one["test"]["accuracy"] for one in found["task"]]
    assert apart["value"] == pytest.approx(values[1] - values[0])
    assert (found["schema"], found["seeds"]) == (1, [0])
    part = found["parts"]["With senses and without"]
    assert [row[0] for row in part["tables"][0]["rows"]] == ["without senses", "with senses"]
    assert all(dot["found"]["low"] is not None for dot in part["dots"][0]["dots"])
    again, _ = run("run", file, "--output", tmp_path / "out")  # what was trained is read again
    assert again.count("is trained already") == 2
    same = json.loads((tmp_path / "out" / "results.json").read_text())
    assert same["task"] == found["task"]
    shown, _ = run("run", file, "--output", tmp_path / "out", "--dry-run")
    assert "2 runs, 2 of them finished" in shown


def outcome(arm: str, seed: int, right: str) -> Outcome:
    measures = {"accuracy": right.count("1") / len(right), "open_words": 31.6}
    metrics = {"test": measures, "seconds": {"training": 1.0}}
    found = {**measures, "seconds": 1.0, "split": "test", "right": right, "metrics": metrics}
    return Outcome(Cell("d", "b", arm, seed, {}), found)


def test_the_cost_of_senses_is_paired_by_seed_and_row() -> None:
    """Of the first seed senses cost 20 points, of the second nothing."""
    plain, worse = "1" * 80 + "0" * 20, "1" * 60 + "0" * 40
    runs = [outcome(WITHOUT, 0, plain), outcome(WITH, 0, worse)]
    assert "-20.0 points of accuracy (-" in task_line(runs)
    assert "chance" not in task_line(runs)
    runs += [outcome(WITHOUT, 1, plain), outcome(WITH, 1, plain)]
    line = task_line(runs)
    assert line.startswith("On the task accuracy is 70.00 % with senses and 80.00 % without: -10.0")
    assert "over 2 seeds and rows; sign-flip test over rows: p 0.0005), which may be chance" in line
    assert line.endswith("; the mean of 2 seeds.")
    apart = task_record(runs)["task_difference"]
    assert (apart["value"], apart["high"], apart["seeds"]) == (pytest.approx(-0.1), 0, 2)
    table = task_finding(runs).tables[0]
    row = dict(zip(table.columns, table.rows[1], strict=True))
    assert row["minus without senses"] == pytest.approx(-10)
    assert task_record([]) == {"task": [], "task_difference": None}


def test_seeds_are_a_number_of_runs() -> None:
    config = load_study(SENSES, seeds=2)
    assert isinstance(config, WicConfig)
    cells = STUDIES["wic"].cells(config)
    assert [(cell.seed, cell.config().settings.senses is None) for cell in cells] == [
        *((0, True), (0, False), (1, True), (1, False)),
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seeds": 0}, "seeds is 0; expected a whole number of at least 1 and at most 100."),
        ({"seeds": []}, "seeds is []; expected a whole number of at least 1 and at most 100."),
        ({"senses": 4, "fewest": 7}, "fewest is 7; expected at least 8 contexts to tell 4 senses"),
        ({"train": {"epoch": 3}}, "'epoch' in train is no setting; did you mean 'epochs'?"),
        ({"train": {"senses": {"count": 1}}}, "senses.count is 1 in train; expected"),
        ({"train": {"seed": 3}}, "train.seed is given; expected seeds"),
    ],
)
def test_what_is_wrong_is_told_at_once(
    files: StudyFiles, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    _, error = run("run", write(files, tmp_path, **changes), "--output", tmp_path / "x", code=2)
    assert message in error
    assert not (tmp_path / "x").exists()
