"""Peak extra memory of a piece of work, read from the kernel (Linux)."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path


def _status_bytes(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise OSError(f"/proc/self/status has no {field}; peak memory is measured on Linux only.")


def peak_extra_bytes(work: Callable[[], object]) -> int:
    """How far the resident set rises above its level before the call, at its highest."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # resets the high-water mark
    before = _status_bytes("VmRSS")
    work()
    return max(0, _status_bytes("VmHWM") - before)
