"""Rows that change between two runs of the same study: nothing of two sets is put together."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from lexical_sae.studies import run_folder
from tests.command_line import run
from tests.studies.conftest import StudyFiles

ONE = {"compared": ["full"]}


def found_in(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / "results.json").read_text())["cells"][0]
    return found


def measured_on(cell: dict[str, Any], rows: int) -> None:
    """Every number is of the same rows."""
    assert len(cell["right"]) == rows
    assert cell["rows"]["test"] == rows
    assert cell["accuracy"] == pytest.approx(cell["right"].count("1") / rows)


@pytest.mark.parametrize("study", ["ablation", "multi_dataset"])
def test_other_held_out_rows_are_measured_but_not_trained(
    files: StudyFiles, tmp_path: Path, study: str
) -> None:
    own = ONE if study == "ablation" else {"recipes": ["dense twin"]}
    file, out = files.write(study, **own), tmp_path / "out"
    run("run", file, "--output", out)
    before = found_in(out)
    measured_on(before, 48)
    shown, _ = run("run", file, "--output", out, "--set", "held_out_rows=17")
    assert "is trained already" in shown
    measured_on(found_in(out), 17)
    run("run", file, "--output", out)  # and back: as at the end of the training
    after = found_in(out)
    assert after["right"] == before["right"]
    for name in ("accuracy", "open_words", "circuit_agreement", "reference_overlap"):
        assert after.get(name) == pytest.approx(before.get(name)), name
    assert after["seconds"] == before["seconds"]


def run_then_shorten(files: StudyFiles, tmp_path: Path, split: str) -> tuple[Path, Path]:
    """The file of a study that has been run, and its folder; then nine rows of a split go."""
    data, out = tmp_path / "data", tmp_path / "out"
    shutil.copytree(files.data, data)
    file = files.write("ablation", datasets=[str(data)], **ONE)
    run("run", file, "--output", out)
    lines = (data / f"{split}.csv").read_text().splitlines()
    (data / f"{split}.csv").write_text("\n".join(lines[:-9]) + "\n")
    return file, out


def test_an_edited_test_file_is_noticed(files: StudyFiles, tmp_path: Path) -> None:
    file, out = run_then_shorten(files, tmp_path, "test")
    shown, _ = run("run", file, "--output", out)
    assert "its held-out rows are others now: measured anew" in shown
    measured_on(found_in(out), 39)
    assert "finished before" in run("run", file, "--output", out)[0]


def test_new_seeds_are_not_added_to_other_training_texts(files: StudyFiles, tmp_path: Path) -> None:
    file, out = run_then_shorten(files, tmp_path, "train")
    shown, _ = run("run", file, "--output", out, "--seeds", 2, code=1)
    assert shown.count("are not those that this study began with; change --output") >= 2
    assert len(list(out.rglob("metrics.json"))) == 1


def test_validation_rows_that_may_stop_a_run_are_refused(files: StudyFiles, tmp_path: Path) -> None:
    file = files.write("ablation", train={"early_stopping": 3}, **ONE)
    run("run", file, "--output", tmp_path)
    more = ["--set", "held_out_rows=20"]
    shown, _ = run("run", file, "--output", tmp_path, *more, code=1)
    assert "holds a run that other validation rows could stop; change --output" in shown


def test_a_run_of_an_earlier_version_is_measured_anew(files: StudyFiles, tmp_path: Path) -> None:
    """Its record holds the training rows only."""
    file = files.write("ablation", **ONE)
    run("run", file, "--output", tmp_path)
    record = next(tmp_path.rglob("trained_on.json"))
    known = json.loads(record.read_text())
    assert set(known) == {"train", "validation", "test"}
    record.write_text(json.dumps({"rows": known["train"]}))
    next(tmp_path.rglob("result.json")).unlink()
    assert "measured anew" in run("run", file, "--output", tmp_path)[0]
    assert json.loads(record.read_text()) == known
    record.write_text(json.dumps({"rows": "others"}))
    next(tmp_path.rglob("result.json")).unlink()
    shown, _ = run("run", file, "--output", tmp_path, code=1)
    assert "holds a run on other texts; change --output" in shown


def test_a_study_that_got_nowhere_may_begin_with_other_rows(
    files: StudyFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*arguments: object, **options: object) -> None:
        raise MemoryError

    file = files.write("ablation", **ONE)
    with monkeypatch.context() as broken:
        broken.setattr(run_folder, "train_run", fails)
        run("run", file, "--output", tmp_path, code=1)
    run("run", file, "--output", tmp_path, "--set", "train_rows=50")
    assert found_in(tmp_path)["rows"]["train"] == 50
