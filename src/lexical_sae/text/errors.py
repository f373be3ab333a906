"""What goes wrong with data, said in one sentence to the person who brought it."""

from __future__ import annotations


class DataError(ValueError):
    """Data that cannot be used as it is: what was found, what was expected, what to do."""


class SourceUnavailableError(DataError):
    """A source that cannot answer now (no network, not installed); another one may."""
