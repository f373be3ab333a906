"""The file of a run's logs: whole after a kill, without repeats after a resume."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers import TrainerCallback

from lexical_sae.training.history import HistoryCallback, read_history
from tests.training.small_run import Kill, small_trainer


def _state(step: int = 0, *, main: bool = True) -> Any:
    return SimpleNamespace(global_step=step, epoch=step / 10, is_world_process_zero=main)


def _log(callback: HistoryCallback, step: int, *, main: bool = True, **values: Any) -> None:
    callback.on_log(None, _state(step, main=main), None, logs=values)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Time that passes only when told to."""
    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr("lexical_sae.training.history.time.monotonic", lambda: clock.now)
    return clock


def test_every_log_is_on_disk_at_once(tmp_path: Path, clock: SimpleNamespace) -> None:
    file = tmp_path / "new" / "history.jsonl"
    callback = HistoryCallback(file)
    callback.on_train_begin(None, _state(), None)
    assert read_history(file) == []
    clock.now += 2.5
    _log(callback, 5, loss=0.5, ce=torch.tensor(0.25), epoch=0.5)
    first = {"step": 5, "epoch": 0.5, "seconds": 2.5, "loss": 0.5, "ce": 0.25}
    assert read_history(file) == [first]
    _log(callback, 10, eval_ce=0.3)
    assert read_history(file) == [
        first,
        {"step": 10, "epoch": 1.0, "seconds": 2.5, "eval_ce": 0.3},
    ]


def test_a_number_that_is_none_is_null(tmp_path: Path) -> None:
    callback = HistoryCallback(tmp_path / "h")
    callback.on_train_begin(None, _state(), None)
    _log(callback, 1, loss=float("nan"), grad_norm=float("inf"))
    assert "NaN" not in (tmp_path / "h").read_text()
    assert read_history(tmp_path / "h")[0]["loss"] is None


def test_only_the_main_process_writes(tmp_path: Path) -> None:
    callback = HistoryCallback(tmp_path / "h")
    callback.on_train_begin(None, _state(main=False), None)
    _log(callback, 1, main=False, loss=1.0)
    assert list(tmp_path.iterdir()) == []


def test_an_evaluation_without_training_leaves_the_file_alone(tmp_path: Path) -> None:
    (tmp_path / "h").write_text('{"step": 3}\n')
    _log(HistoryCallback(tmp_path / "h"), 0, eval_ce=1.0)
    assert read_history(tmp_path / "h") == [{"step": 3}]


def test_a_resumed_run_cuts_off_what_it_will_write_again(
    tmp_path: Path, clock: SimpleNamespace
) -> None:
    file = tmp_path / "h"
    callback = HistoryCallback(file)
    callback.on_train_begin(None, _state(), None)
    for step in (5, 10, 15, 20):
        clock.now += 10
        _log(callback, step, loss=1.0)
    with file.open("a") as open_file:
        open_file.write('{"step": 25, "lo')  # killed here, after a checkpoint at step 12
    clock.now = 5.0  # another boot of the machine
    callback = HistoryCallback(file)
    callback.on_train_begin(None, _state(12), None)
    assert [record["step"] for record in read_history(file)] == [5, 10]
    clock.now += 4
    _log(callback, 15, loss=0.5)
    assert [(r["step"], r["seconds"]) for r in read_history(file)] == [(5, 10), (10, 20), (15, 24)]
    assert list(tmp_path.iterdir()) == [file]


def test_the_end_of_a_run_that_goes_on_is_cut_off(tmp_path: Path) -> None:
    callback = HistoryCallback(tmp_path / "h")
    callback.on_train_begin(None, _state(), None)
    _log(callback, 10, loss=1.0)
    _log(callback, 10, train_runtime=3.0)
    callback.on_train_begin(None, _state(10), None)
    assert [r.get("loss") for r in read_history(tmp_path / "h")] == [1.0]


def test_a_run_from_the_start_and_a_lost_file(tmp_path: Path) -> None:
    (tmp_path / "h").write_text('{"step": 3}\n')
    HistoryCallback(tmp_path / "h").on_train_begin(None, _state(), None)
    assert read_history(tmp_path / "h") == []
    callback = HistoryCallback(tmp_path / "lost")
    callback.on_train_begin(None, _state(7), None)
    _log(callback, 8, loss=1.0)
    assert [record["step"] for record in read_history(tmp_path / "lost")] == [8]


@pytest.mark.parametrize("last", ['{"step": 2, "ce": 0.', "\x00\x00", '{"step": 2}x\n', "7", "[]"])
def test_a_broken_last_line_is_ignored(tmp_path: Path, last: str) -> None:
    (tmp_path / "h").write_text('{"step": 1}\n' + last)
    assert read_history(tmp_path / "h") == [{"step": 1}]


@pytest.mark.parametrize("line", ["{", '{"epoch": 1.0}', "7", '{"step": "2"}'])
def test_any_other_broken_line_is_told(tmp_path: Path, line: str) -> None:
    (tmp_path / "h").write_text(f'{{"step": 1}}\n\n{line}\n{{"step": 3}}\n')
    with pytest.raises(ValueError, match="line 3,"):
        read_history(tmp_path / "h")


def _run(folder: Path, *callbacks: TrainerCallback, resume: Path | None = None) -> None:
    history = HistoryCallback(folder / "history.jsonl")
    trainer = small_trainer(folder, history, *callbacks)
    trainer.train(resume_from_checkpoint=str(resume) if resume else None)


def test_a_killed_and_resumed_run_has_the_history_of_one(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        _run(tmp_path, Kill())
    file = tmp_path / "history.jsonl"
    assert [record["step"] for record in read_history(file)] == [1, 2, 3, 4, 5, 6]
    _run(tmp_path, resume=tmp_path / "checkpoint-4")
    found = read_history(file)
    assert [record["step"] for record in found] == [*range(1, 11), 10]
    assert "train_runtime" in found[-1]
    seconds = [record["seconds"] for record in found]
    assert seconds == sorted(seconds)
    for line in file.read_text().splitlines():
        json.loads(line, parse_constant=lambda name: pytest.fail(name))
