"""Where fetched files are kept."""

from __future__ import annotations

import os
from pathlib import Path

CACHE_VARIABLE = "LEXICAL_SAE_CACHE"


def cache_dir() -> Path:
    """The folder named by ``LEXICAL_SAE_CACHE``, or the user's cache folder for this package."""
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        return Path(named).expanduser()
    import platformdirs

    return platformdirs.user_cache_path("lexical-sae")
