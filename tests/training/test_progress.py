"""What a run shows: one live line, plain lines where there is no terminal, nothing left behind."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from lexical_sae.training.progress import ProgressCallback
from lexical_sae.training.progress_text import Piece, Style, duration, fit, number
from tests.training.screen import screen
from tests.training.small_run import Kill, small_trainer

TOTAL = 508
METRICS = {"eval_accuracy": 0.8417, "eval_open_words": 38.12, "eval_circuit_agreement": 0.96}
EVALUATED = "epoch 1.0  validation accuracy 84.2 %  open words 38.1  circuit agreement 96.0 %"


@pytest.fixture(autouse=True)
def _streams(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    before = sys.stdout, sys.stderr
    yield
    assert (sys.stdout, sys.stderr) == before


def _console(width: int = 120, *, terminal: bool = True, file: Any = None) -> Console:
    """As the commands make theirs."""
    file = file if file is not None else io.StringIO()
    return Console(
        file=file,
        force_terminal=terminal,
        width=width,
        highlight=False,
        soft_wrap=True,
        emoji=False,
    )


def _text(console: Console) -> str:
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


def _state(step: int = 0, *, main: bool = True) -> Any:
    epoch = 2 * step / TOTAL
    return SimpleNamespace(
        global_step=step, max_steps=TOTAL, epoch=epoch, is_world_process_zero=main
    )


def _logs(step: int) -> dict[str, float]:
    logs = {"loss": 0.7, "ce": 0.41234, "open_words": 61.2, "phase": 0.0, "learning_rate": 1e-4}
    if step > 102:
        logs |= {"completeness": 0.05, "separation": 0.31, "sharpness": 0.4, "sparsity": 0.0}
        logs |= {"phase": 1.0, "multiplier": 2.5, "bound": 0.3, "pressure": 0.01}
    return logs


def _run(callback: ProgressCallback, until: int, *, main: bool = True, dense: bool = False) -> None:
    """The events of a run, with an evaluation at each half."""
    callback.on_train_begin(None, _state(main=main), None)
    for step in range(1, until + 1):
        state = _state(step, main=main)
        callback.on_step_end(None, state, None)
        if step % 4 == 0:
            logs = {"loss": 0.4, "ce": 0.4, "phase": 0.0} if dense else _logs(step)
            callback.on_log(None, state, None, logs=logs)
        if step % 254 == 0:
            metrics = {"eval_accuracy": 0.8417, "eval_ce": 0.4} if dense else METRICS
            callback.on_log(None, state, None, logs=metrics)
            callback.on_evaluate(None, state, None, metrics=metrics)


@pytest.mark.parametrize("width", [250, 120, 80, 60, 40, 20, 9])
def test_there_is_one_live_line_and_none_in_the_end(width: int) -> None:
    console = _console(width)
    callback = ProgressCallback(console)
    with callback:
        _run(callback, 400)
        lines, cursor = screen(_text(console), width)
        assert not cursor
        assert "400/508" in lines[-1]
    permanent, cursor = screen(_text(console), width)
    assert cursor
    assert permanent == lines[:-1]
    assert "validationaccuracy84.2%" in "".join(permanent).replace(" ", "")
    assert len(permanent) == 1 or width < 30  # where even the accuracy alone is wider


def test_the_live_line_says_all_when_there_is_room() -> None:
    console = _console(250)
    with ProgressCallback(console) as callback:
        _run(callback, 400)
        line = screen(_text(console), 250)[0][-1]
    for part in ("circuits  400/508", "left", "ce 0.41 · completeness 0.05 · separation 0.31"):
        assert part in line
    assert "sparsity 0.00 · λ 2.50 · open words 61 · accuracy 84.2 %" in line
    assert "━" in line


def test_a_narrow_terminal_drops_the_least_important_values() -> None:
    shown = {}
    for width in (120, 80, 60):
        console = _console(width)
        with ProgressCallback(console) as callback:
            _run(callback, 400)
            shown[width] = screen(_text(console), width)[0]
    assert "λ 2.50 · open words 61 · accuracy 84.2 %" in shown[120][-1]
    assert "sparsity" not in shown[120][-1]
    assert shown[80][-1].endswith("ce 0.41 · open words 61 · accuracy 84.2 %")
    assert shown[60][-1].endswith("ce 0.41 · open words 61")
    assert shown[120][0] == EVALUATED
    assert shown[60][0] == "epoch 1.0  validation accuracy 84.2 %  open words 38.1"


def test_without_a_terminal_there_are_plain_lines() -> None:
    console = _console(40, terminal=False)
    callback = ProgressCallback(console)
    _run(callback, TOTAL)
    callback.on_train_end(None, _state(TOTAL), None)
    text = _text(console)
    assert all(c.isprintable() or c == "\n" for c in text)
    lines = text.splitlines()
    steps = [line for line in lines if line.startswith("step ")]
    assert 10 <= len(steps) <= 11
    assert steps[0].startswith("step 52/508  warm-up  ce 0.412  open words 61  ")
    assert steps[0].endswith(" left")
    assert "step 104/508  circuits  ce 0.412  completeness 0.050" in text
    assert steps[-1].startswith("step 508/508  circuits")
    assert EVALUATED in lines


def test_plain_lines_of_a_resumed_run_start_where_it_does() -> None:
    console = _console(terminal=False)
    callback = ProgressCallback(console)
    callback.on_train_begin(None, _state(300), None)
    for step in (304, 306, 356):
        callback.on_log(None, _state(step), None, logs=_logs(step))
    assert [line[:12] for line in _text(console).splitlines()] == ["step 306/508", "step 356/508"]


def test_a_dense_model_has_no_warm_up() -> None:
    console = _console(terminal=False)
    _run(ProgressCallback(console), TOTAL, dense=True)
    lines = _text(console).splitlines()
    assert lines[0].startswith("step 52/508  training  ce 0.400  ")
    assert "epoch 1.0  validation accuracy 84.2 %" in lines
    assert "warm-up" not in _text(console)


def test_only_one_process_shows() -> None:
    console = _console()
    _run(ProgressCallback(console), TOTAL, main=False)
    assert _text(console) == ""


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_an_interruption_leaves_no_live_line(error: type[BaseException]) -> None:
    console = _console()
    callback = ProgressCallback(console)

    def interrupted() -> None:
        with callback:
            _run(callback, 30)
            print("printed meanwhile")
            raise error

    with pytest.raises(error):
        interrupted()
    assert screen(_text(console), 120) == (["printed meanwhile"], True)
    callback.close()


def test_it_lives_through_a_real_run_and_a_real_interruption(tmp_path: Path) -> None:
    for extra in ([], [Kill()]):
        console = _console()
        callback = ProgressCallback(console)
        trainer = small_trainer(tmp_path / str(len(extra)), callback, *extra)
        if extra:
            with pytest.raises(KeyboardInterrupt), callback:
                trainer.train()
        else:
            trainer.train()
        lines, cursor = screen(_text(console), 120)
        assert "training" in _text(console)
        assert cursor
        assert all("left" not in line for line in lines)


def test_a_second_start_takes_the_first_line_down() -> None:
    console = _console()
    with ProgressCallback(console) as callback:
        _run(callback, 30)
        _run(callback, 40)
        assert len(screen(_text(console), 120)[0]) == 1
    assert screen(_text(console), 120) == ([], True)


@pytest.mark.parametrize("terminal", [True, False])
def test_an_old_code_page_ends_no_run(terminal: bool) -> None:
    raw = io.BytesIO()
    console = _console(200, terminal=terminal, file=io.TextIOWrapper(raw, encoding="cp1252"))
    with ProgressCallback(console) as callback:
        _run(callback, TOTAL)
    console.file.flush()
    assert b"lambda 2.5" in raw.getvalue()
    assert Style.of("no such encoding").multiplier == "lambda"


def test_a_dumb_terminal_gets_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    console = _console()
    _run(ProgressCallback(console), 254)
    assert "\x1b" not in _text(console)
    assert max(map(len, _text(console).splitlines())) < 120


def test_an_evaluation_with_nothing_to_show_prints_nothing() -> None:
    console = _console(terminal=False)
    ProgressCallback(console).on_evaluate(None, _state(5), None, metrics={"test_accuracy": 1.0})
    assert _text(console) == ""


def test_the_words() -> None:
    pieces = [Piece("bbb", 1), Piece("a", 0), Piece("cc", 2)]
    assert fit(pieces, " ", None) == fit(pieces, " ", 8) == "bbb a cc"
    assert [fit(pieces, " ", room) for room in (7, 4, 1, 0)] == ["bbb a", "a", "a", ""]
    assert [number(x, 2) for x in (0.0, 0.0003, -0.5, 12345.0)] == [
        *("0.00", "3e-04", "-0.50", "1.23e+04"),
    ]
    assert (number(float("nan"), 2), number(float("inf"), 2)) == ("nan", "inf")
    assert [duration(s) for s in (0, 59.6, 3599, 7325)] == ["0:00", "1:00", "59:59", "2:02:05"]
