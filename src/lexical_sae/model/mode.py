"""Training and evaluation mode for the length of a block."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from torch import nn


@contextlib.contextmanager
def in_mode(model: nn.Module, *, training: bool) -> Iterator[None]:
    """The mode of before comes back also after an error."""
    before = model.training
    model.train(training)
    try:
        yield
    finally:
        model.train(before)
