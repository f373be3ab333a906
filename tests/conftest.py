"""Tiny models of every family, built from configs, with tokenizers trained on the spot."""

from __future__ import annotations

import pytest
import torch

from tests.tiny import tiny_model

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def tiny():
    """A tiny BERT-based model, calibrated; shared, so tests must not change it."""
    return tiny_model("bert")
