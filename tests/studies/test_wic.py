"""The study of senses: its runs with senses and without, and what is wrong with a file."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from lexical_sae.studies.files import load_study
from lexical_sae.studies.registry import STUDIES
from lexical_sae.studies.wic_config import WicConfig
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
    data = tmp_path / "data"
    data.mkdir()
    for split in ("train", "validation"):
        shutil.copy(files.data / f"{split}.csv", data)
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
    shown, _ = run("run", file, "--output", tmp_path / "out", "--dry-run")
    assert "2 runs, 2 of them finished" in shown


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
