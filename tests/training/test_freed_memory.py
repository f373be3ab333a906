"""What a step frees is there for the next one, and goes back at the end."""

from __future__ import annotations

import json
import platform
import subprocess
import sys

import pytest

from lexical_sae.training.freed_memory import freed_memory_kept

# In a process of its own, as a training command is: where the free blocks of a process lie depends
# on all that it has done before.
CHILD = """
import json, resource, psutil, torch
from lexical_sae.training.freed_memory import freed_memory_kept

SIZE = 64 * 2**20  # bytes: above what the library would keep by itself

def faults_of_taking_it(times):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(times):
        torch.ones(SIZE // 4)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

memory = lambda: psutil.Process().memory_info().rss
found = {"before": faults_of_taking_it(60)}
with freed_memory_kept():
    found["within"] = faults_of_taking_it(60)
    kept = memory()
found["given_back"] = (kept - memory()) / SIZE
print(json.dumps(found))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only the GNU C library is told")
def test_a_block_that_was_freed_is_taken_again_without_new_pages() -> None:
    child = subprocess.run(
        [sys.executable, "-c", CHILD], check=True, stdout=subprocess.PIPE, text=True
    )
    found = json.loads(child.stdout)
    # not 0 within: an aligned block does not fit into the hole of its like, so some are taken anew
    assert found["within"] < found["before"] / 2
    assert found["given_back"] > 0.5


def test_an_error_passes_through() -> None:
    with pytest.raises(KeyError, match="x"), freed_memory_kept():
        raise KeyError("x")
