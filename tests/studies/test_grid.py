"""The grid: cells are kept, failed ones are told, other settings are refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from lexical_sae.studies import grid
from lexical_sae.studies.cells import folder_name
from tests.command_line import run
from tests.studies.conftest import StudyFiles

ONE = {"compared": ["full"]}


def test_a_failed_cell_is_told_and_the_rest_go_on(files: StudyFiles, tmp_path: Path) -> None:
    datasets = {str(files.folder / "no.csv"): None, str(files.data): None}
    file = files.write("ablation", datasets=datasets, **ONE)
    out = tmp_path / "out"
    shown, _ = run("run", file, "--output", out, code=1)
    assert "[1/2]" in shown
    found = json.loads((out / "results.json").read_text())
    failed, finished = sorted(found["cells"], key=lambda cell: "no.csv" not in cell["dataset"])
    assert "no.csv" in failed["failed"]
    assert finished["failed"] == ""
    assert 0 <= finished["accuracy"] <= 1
    assert [title.split(",")[0] for title in found["failed"]] == [failed["dataset"]]
    assert "failed: " in (out / "tables.md").read_text()
    assert "no.csv" in (out / "report.html").read_text()


def test_finished_cells_are_kept_and_others_added(
    files: StudyFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = files.write("ablation", compared=["CE only"])
    out = tmp_path / "out"
    run("run", file, "--output", out)
    before = {path: path.stat().st_mtime_ns for path in (out / "cells").rglob("result.json")}
    assert len(before) == 2
    shown, _ = run("run", file, "--output", out, "--seeds", 2, "--dry-run")
    assert "4 runs, 2 of them finished" in shown

    trained: list[str] = []
    really = grid.trained_run

    def counted(config, folder, data, console):  # type: ignore[no-untyped-def]
        trained.append(folder.name)
        return really(config, folder, data, console)

    monkeypatch.setattr(grid, "trained_run", counted)
    shown, _ = run("run", file, "--output", out, "--seeds", 2)
    assert trained == ["seed1", "seed1"]
    assert shown.count("finished before") == 2
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert len(json.loads((out / "results.json").read_text())["cells"]) == 4


def test_other_settings_are_refused_before_anything_is_trained(
    files: StudyFiles, tmp_path: Path
) -> None:
    file, out = files.write("ablation", **ONE), tmp_path / "out"
    run("run", file, "--output", out)
    before = sorted(out.rglob("*"))
    _, error = run("run", file, "--output", out, "--set", "train.epochs=2", "--seeds", 2, code=2)
    assert "holds a run with other settings; change --output" in error
    assert sorted(out.rglob("*")) == before
    more = ["--set", "train_rows=50", "--seeds", 2]
    _, error = run("run", file, "--output", out, *more, code=2)
    assert "train_rows: null (all), and now it is 50; change --output, or remove" in error
    assert sorted(out.rglob("*")) == before


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (MemoryError(), "out of memory; expected a smaller batch_size"),
        (RuntimeError("CUDA out of memory. Tried"), "out of memory; expected a smaller"),
        (KeyError("x"), "KeyError: 'x' (error.txt in the cell's folder tells more)"),
        (ValueError("one\nline"), "one line"),
    ],
)
def test_whatever_a_cell_raises_is_its_own_failure(
    files: StudyFiles,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    told: str,
) -> None:
    def fails(*arguments: object) -> None:
        raise error

    monkeypatch.setattr(grid, "trained_run", fails)
    shown, _ = run("run", files.write("ablation", **ONE), "--output", tmp_path, code=1)
    assert f"failed: {told}" in shown
    assert bool(list(tmp_path.rglob("error.txt"))) == (not isinstance(error, ValueError))


def test_a_stop_while_measuring_says_how_to_go_on(
    files: StudyFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(grid, "trained_run", stopped)
    shown, _ = run("run", files.write("ablation", **ONE), "--output", tmp_path, code=130)
    assert "stopped; the same command goes on" in shown


def test_names_that_differ_give_folders_that_differ() -> None:
    names = ["a/b", "a-b", "a b", "a:b", "A b", "+ b", "b", "..", "x" * 200, "x" * 201]
    found = [folder_name(name) for name in names]
    assert len(set(found)) == len(names)
    assert all("/" not in name and name not in ("", ".", "..") for name in found)


def test_two_backbones_whose_paths_end_alike_are_two_runs(
    files: StudyFiles, tmp_path: Path
) -> None:
    paths = [tmp_path / name / "model" for name in ("a", "b")]
    for path in paths:
        shutil.copytree(files.backbone, path)
    file = files.write("ablation", **ONE, backbones=[str(path) for path in paths])
    shown, _ = run("run", file, "--output", tmp_path / "out")
    assert "finished before" not in shown
    assert len(list((tmp_path / "out").rglob("metrics.json"))) == 2
    assert "a/model" in shown
    assert "b/model" in shown


def test_a_result_of_other_settings_is_not_taken(files: StudyFiles, tmp_path: Path) -> None:
    """Two evaluations never stand side by side: what is measured again is gone until it is done."""
    file = files.write("experiment", steps=["task"], twin=False, held_out_rows=12)
    run("run", file, "--output", tmp_path)
    result = next(tmp_path.rglob("result.json"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lexical_sae.studies.cell_measures.basic_measures", stop)
        run("run", file, "--output", tmp_path, "--set", "peer_texts=3", code=130)
    assert not result.exists()
    shown, _ = run("run", file, "--output", tmp_path)
    assert "finished before" not in shown


def stop(*arguments: object) -> None:
    raise KeyboardInterrupt
