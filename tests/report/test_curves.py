"""Curves of a run: the right panels, a sound file, and nothing changed around it."""

from __future__ import annotations

import builtins
import math
import re
import struct
import sys
from pathlib import Path
from typing import Any

import pytest

from lexical_sae.report.curves import TERMS, draw_curves
from lexical_sae.report.series import series, smoothed, warmup_end
from lexical_sae.training import combinations

PANELS = ["cross-entropy", "circuit terms", "open words", "multiplier λ", "validation, %"]


def _history(steps: int = 300, warmup: int = 60, every: int = 5) -> list[dict[str, Any]]:
    history: list[dict[str, Any]] = []
    for step in range(every, steps + 1, every):
        done = max(0.0, (step - warmup) / steps)
        record = {"step": step, "loss": 1.0, "ce": 0.3 + math.exp(-step / 50), "phase": 0.0}
        record["open_words"] = 30 + 90 * math.exp(-3 * done)
        if step > warmup:
            record |= {name: 0.5 - 0.05 * i for i, name in enumerate(TERMS)}
            record |= {"phase": 1.0, "multiplier": math.exp(3 * done), "bound": 0.4}
        history.append(record)
        if step % 100 == 0 or step == steps:
            found = {"eval_ce": 0.4, "eval_accuracy": 0.8, "eval_open_words": 40.0}
            history.append({"step": step, **found, "eval_circuit_agreement": 0.9})
    return [*history, {"step": steps, "train_runtime": 3.0, "train_loss": 0.5}]


def _twin() -> list[dict[str, Any]]:
    kept = ("step", "loss", "ce", "phase", "eval_ce", "eval_accuracy")
    return [{k: v for k, v in record.items() if k in kept} for record in _history()]


def _png_size(file: Path) -> tuple[int, int]:
    head = file.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", head[16:24])
    return width, height


def _words(svg: Path) -> list[str]:
    """The texts of a picture; matplotlib draws letters as paths, with the text as a comment."""
    return [text.strip() for text in re.findall(r"<!--(.*?)-->", svg.read_text(encoding="utf-8"))]


def test_a_png_is_as_wide_as_promised(tmp_path: Path) -> None:
    file = draw_curves(_history(), tmp_path / "curves.png", "a run", target_words=32)
    assert file == tmp_path / "curves.png"
    width, height = _png_size(file)
    assert width == 1200
    assert 1000 < height < 2000
    assert file.stat().st_size > 30_000
    assert list(tmp_path.iterdir()) == [file]


def test_every_panel_and_every_name_is_there(tmp_path: Path) -> None:
    words = _words(draw_curves(_history(), tmp_path / "c.svg", "a $run$_1", target_words=32))
    for name in (*PANELS, *TERMS, "bound τ", "target", "warm-up", "circuit agreement", "step"):
        assert name in words, name
    assert "a $run$_1" in words


def test_a_dense_model_has_two_panels(tmp_path: Path) -> None:
    words = _words(draw_curves(_twin(), tmp_path / "c.svg", "twin", target_words=32))
    assert [name for name in PANELS if name in words] == ["cross-entropy", "validation, %"]
    assert "warm-up" not in words
    assert "circuit agreement" not in words
    assert "target" not in words
    assert _png_size(draw_curves(_twin(), tmp_path / "c.png", "twin"))[1] < 800


@pytest.mark.parametrize(
    "history",
    [
        _history(15, 5),
        _history(5, 5),
        [{"step": 0, "eval_accuracy": 0.5}],
        [{"step": 1, "loss": 0.7}],
        [{"step": 1, "ce": None, "loss": None}, {"step": 2, "ce": 0.5, "multiplier": 1.0}],
        [{**r, "sparsity": 400.0, "multiplier": 148.0} for r in _history(20, 5)],
    ],
    ids=["three", "one", "evaluation", "loss", "nan", "large"],
)
def test_short_and_odd_runs(
    history: list[dict[str, Any]], tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    assert _png_size(draw_curves(history, tmp_path / "c.png", "短い"))[0] == 1200
    assert not recwarn.list


@pytest.mark.parametrize("history", [[], [{"step": 3, "train_runtime": 1.0}]])
def test_nothing_to_draw_is_an_error(history: list[dict[str, Any]], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no curve"):
        draw_curves(history, tmp_path / "c.png", "empty")
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_ending_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"must end in \.png or \.svg"):
        draw_curves(_history(), tmp_path / "c.bmp", "a run")


def test_nothing_of_matplotlib_is_changed(tmp_path: Path) -> None:
    import matplotlib

    before = matplotlib.rcParams.copy()
    had_pyplot = "matplotlib.pyplot" in sys.modules
    draw_curves(_twin(), tmp_path / "c.png", "twin")
    assert ("matplotlib.pyplot" in sys.modules) == had_pyplot
    for name in before.keys() - {"backend"}:  # to look at the backend is to choose one
        assert matplotlib.rcParams[name] == before[name]


def test_a_missing_matplotlib_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def without(name: str, *arguments: Any, **options: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r'pip install "lexical-sae\[training\]"'):
        draw_curves(_history(), tmp_path / "c.png", "a run")


def test_a_failed_drawing_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from matplotlib.figure import Figure

    def fails(self: Figure, path: Path, **options: Any) -> None:
        Path(path).write_bytes(b"half")
        raise OSError("disk full")

    (tmp_path / "c.png").write_bytes(b"old")
    monkeypatch.setattr(Figure, "savefig", fails)
    with pytest.raises(OSError, match="disk full"):
        draw_curves(_twin(), tmp_path / "c.png", "twin")
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [b"old"]


def test_series_and_means() -> None:
    history: list[dict[str, Any]] = [{"step": 2, "a": 1}, {"step": 1, "a": 3.0}]
    history += [{"step": 2, "a": 2.0}, {"step": 3, "a": None}, {"step": 4}]
    assert series(history, "a") == [(1, 3.0), (2, 2.0)]
    assert smoothed([1.0] * 39) is None
    mean = smoothed([float(i) for i in range(100)])
    assert mean is not None
    assert mean[50] == 50
    assert len(mean) == 100
    assert warmup_end(_history()) == 60
    assert warmup_end(_twin()) is None


def test_the_terms_are_those_of_the_objective() -> None:
    assert (*combinations.TERMS, "distillation") == TERMS
