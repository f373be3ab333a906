"""Memory that a training step frees is kept for the next one.

Every step takes and frees the same large blocks, the gradient of the embedding table above all. The
GNU C library hands blocks of that size back to the system at once, and the next step gets them anew
as pages that are cleared one by one: an eighth to a fifth of a step's time (docs/performance.md).
"""

from __future__ import annotations

import contextlib
import ctypes
import platform
from collections.abc import Iterator

# parameters of mallopt, and what the library starts with
_TRIM_THRESHOLD, _TRIM_DEFAULT = -1, 128 * 1024
_MMAP_MAX, _MMAP_MAX_DEFAULT = -4, 65536


@contextlib.contextmanager
def freed_memory_kept() -> Iterator[None]:
    """Within the block freed memory stays with the process; afterwards what is free goes back. An
    aligned block does not fit into the hole of its like, so the first few still take new pages.
    Elsewhere than on the GNU C library nothing is done."""
    if platform.libc_ver()[0] != "glibc":
        yield
        return
    library = ctypes.CDLL(None)
    library.mallopt(_MMAP_MAX, 0)
    library.mallopt(_TRIM_THRESHOLD, 2**31 - 1)
    try:
        yield
    finally:
        library.mallopt(_MMAP_MAX, _MMAP_MAX_DEFAULT)
        library.mallopt(_TRIM_THRESHOLD, _TRIM_DEFAULT)
        library.malloc_trim(0)
