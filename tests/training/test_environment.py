"""What is said of the machine, and JSON that every reader takes."""

from __future__ import annotations

import getpass
import json
import platform
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import lexical_sae
from lexical_sae.training import environment as module
from lexical_sae.training.environment import environment, git_state, plain_values, write_json


def _git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    command = ["git", "-C", str(folder), *who, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package in a repository of its own, with one commit."""
    folder = tmp_path / "src" / "package"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    _git(tmp_path, "init", "--quiet")
    _git(tmp_path, "add", ".")
    _git(tmp_path, "commit", "--quiet", "-m", "first")
    return folder


def test_it_says_what_matters_and_can_be_written() -> None:
    found = environment(seeds={"model": 3, "data": 4})
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["python"] == platform.python_version()
    assert found["versions"]["torch"] == torch.__version__
    assert found["versions"]["lexical_sae"] == lexical_sae.__version__
    assert (found["seeds"], found["processes"]) == ({"model": 3, "data": 4}, 1)
    assert found["threads"] == torch.get_num_threads()


def test_it_does_not_tell_who_ran_it() -> None:
    text = json.dumps({**environment(), "git": None})
    assert str(Path.home()) not in text
    assert str(Path(lexical_sae.__file__).parent) not in text
    assert platform.node() not in text
    assert f'"{getpass.getuser()}"' not in text


def test_a_package_that_is_missing_has_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PACKAGES", ("torch", "no-such-package"))
    assert environment()["versions"]["no-such-package"] is None


def test_the_commit_and_whether_there_are_changes(package: Path) -> None:
    commit = _git(package, "rev-parse", "HEAD")
    assert git_state(package) == {"commit": commit[:12], "dirty": False}
    (package.parents[1] / "notes.txt").write_text("a result, not code")
    assert git_state(package) == {"commit": commit[:12], "dirty": False}
    (package / "new.py").write_text("")
    assert git_state(package) == {"commit": commit[:12], "dirty": True}


def test_the_repository_around_a_virtual_environment_is_not_ours(package: Path) -> None:
    installed = package.parents[1] / ".venv" / "package"
    installed.mkdir(parents=True)
    (installed / "__init__.py").write_text("")
    assert git_state(installed) is None


def test_git_never_stands_in_the_way(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert git_state(tmp_path / "nowhere") is None

    def fails(*_: Any, **__: Any) -> None:
        raise subprocess.TimeoutExpired("git", 10)

    monkeypatch.setattr(subprocess, "run", fails)
    assert git_state(package) is None
    monkeypatch.undo()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert git_state(package) is None
    assert environment()["git"] is None


def test_a_hook_of_another_repository_is_not_asked(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    assert git_state(package) is not None


def test_json_keeps_the_order_and_has_no_nan(tmp_path: Path) -> None:
    value = {
        "z": [float("nan"), float("-inf"), 1.5],
        "a": {"loss": np.float32(0.5), "tensor": torch.tensor(3), 7: (True, None)},
        "word": "schön",
    }
    file = write_json(tmp_path / "a.json", value)
    text = file.read_text(encoding="utf-8")
    assert text.endswith("}\n")
    assert "schön" in text
    found = json.loads(text, parse_constant=lambda name: pytest.fail(name))
    assert list(found) == ["z", "a", "word"]
    assert found["z"] == [None, None, 1.5]
    assert found["a"] == {"loss": 0.5, "tensor": 3, "7": [True, None]}
    assert plain_values(np.float64("inf")) is None


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    file = write_json(tmp_path / "a.json", {"a": 1})
    with pytest.raises(TypeError):
        write_json(file, {"a": object()})
    assert json.loads(file.read_text()) == {"a": 1}
    assert list(tmp_path.iterdir()) == [file]
