"""What a step frees is there for the next one, and goes back at the end."""

from __future__ import annotations

import platform
import resource

import psutil
import pytest
import torch

from lexical_sae.training.freed_memory import freed_memory_kept

SIZE = 64 * 2**20  # bytes: above what the library would keep by itself


def _faults_of_taking_it_again() -> int:
    torch.ones(SIZE // 4)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.ones(SIZE // 4)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only the GNU C library is told")
def test_a_block_that_was_freed_is_taken_again_without_new_pages() -> None:
    pages = SIZE // resource.getpagesize()
    assert _faults_of_taking_it_again() > pages // 1024  # even with huge pages
    with freed_memory_kept():
        assert _faults_of_taking_it_again() < pages // 1024
        kept = psutil.Process().memory_info().rss
    assert psutil.Process().memory_info().rss < kept - SIZE // 2
    assert _faults_of_taking_it_again() > pages // 1024


def test_an_error_passes_through() -> None:
    with pytest.raises(KeyError, match="x"), freed_memory_kept():
        raise KeyError("x")
