"""Seconds of the parts of a run."""

from __future__ import annotations

import contextlib
import time
from typing import Any


class Stopwatch:
    """Seconds of each named part of a run."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextlib.contextmanager
    def part(self, name: str) -> Any:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start
