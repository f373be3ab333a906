"""Calls into transformers: quietly, and with their errors turned into one sentence."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from safetensors import SafetensorError


def first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


@contextlib.contextmanager
def quiet() -> Iterator[None]:
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
def loading(what: str, advice: str) -> Iterator[None]:
    """Around calls that only read files: missing ones (OSError), an unknown architecture or a
    config that makes no sense (ValueError), weights of other sizes (RuntimeError) or cut short."""
    try:
        with quiet():
            yield
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        raise ValueError(f"{what} cannot be loaded ({first_line(error)}); {advice}") from error
