"""Schedule-Free keeps two sets of weights; what is evaluated or saved must be the right one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from torch.optim import Optimizer


@contextlib.contextmanager
def evaluation_weights(optimizer: Optimizer) -> Iterator[None]:
    """The weights to evaluate and to save, for the length of the block.

    In training, Schedule-Free's parameters hold y, the point where gradients are taken; the
    result of the run is x, the average, which eval() puts in their place. Going back to training
    is an interpolation from x, so y comes back only up to rounding. That is what makes resuming
    exact: a run that starts from a checkpoint written in this block interpolates from the same x,
    so it goes on bit by bit as the run that wrote it. The optimiser's state has to be saved in
    the same block, since it records which of the two the parameters hold.

    Other optimisers have one set of weights, and nothing happens. Accelerate's wrapper passes
    eval(), train() and the groups on to the optimiser in it, so it needs no unwrapping.
    """
    modal: Any = optimizer
    was_training = any(group.get("train_mode", False) for group in optimizer.param_groups)
    if was_training:
        modal.eval()
    try:
        yield
    finally:
        if was_training:
            modal.train()
