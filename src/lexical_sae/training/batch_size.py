"""The batch size from what a step would take and what the machine has."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # a study's config needs the number only
    from lexical_sae.model.lexical_sae import LexicalSAE

LARGEST = 32  # more gives fewer steps, not better ones, on the datasets measured
SHARE = 0.5  # of the free memory: the rest is for data, checkpoints and other people


def free_memory() -> int:
    """Bytes that can be had without swapping."""
    import psutil

    return int(psutil.virtual_memory().available)


def choose_batch_size(model: LexicalSAE, length: int, open_words: int, free: int) -> int:
    """The largest power of two up to 32 whose training step fits into half of `free` bytes."""
    batch = LARGEST
    while batch > 1:
        estimate = model.memory_estimate(batch, length, training=True, open_words=open_words)
        if estimate.total <= SHARE * free:
            return batch
        batch //= 2
    return 1
