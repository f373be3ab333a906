"""A block after which a model and the random states are what they were."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterable, Iterator

import numpy as np
import torch
from torch import nn


@contextlib.contextmanager
def untouched(model: nn.Module, extra: Iterable[nn.Parameter] = ()) -> Iterator[None]:
    """Undo, also after an error, whatever the block does to parameters, buffers, gradients, modes
    and the random states of torch (CPU and CUDA), numpy and Python.

    Gradients are cleared for the block. Buffers are put back as objects too, since some code
    replaces a buffer where other code writes into it.
    """
    parameters = list({id(p): p for p in [*model.parameters(), *extra]}.values())
    modules = [(m, m.training, dict(m._buffers)) for m in model.modules()]
    tensors = [*parameters, *(b for _, _, own in modules for b in own.values() if b is not None)]
    values = [t.detach().clone() for t in tensors]
    gradients = [p.grad for p in parameters]
    python_state, numpy_state = random.getstate(), np.random.get_state()
    devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    with torch.random.fork_rng(devices):
        try:
            for p in parameters:
                p.grad = None
            yield
        finally:
            for module, training, own in modules:
                module.training = training
                module._buffers.clear()
                module._buffers.update(own)
            with torch.no_grad():
                for tensor, value in zip(tensors, values, strict=True):
                    tensor.copy_(value)
            for p, gradient in zip(parameters, gradients, strict=True):
                p.grad = gradient
            random.setstate(python_state)
            np.random.set_state(numpy_state)
