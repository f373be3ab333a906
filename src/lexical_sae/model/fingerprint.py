"""A hash of what a model computes with, so that an explanation can be tied to it."""

from __future__ import annotations

import hashlib
import weakref
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from lexical_sae.model.lexical_sae import LexicalSAE

Versions = tuple[tuple[int, int], ...]
_KNOWN: weakref.WeakKeyDictionary[torch.nn.Module, tuple[Versions, str]] = (
    weakref.WeakKeyDictionary()
)


def model_hash(model: LexicalSAE) -> str:
    """sha256 of every parameter and buffer, by name; formed anew only after one has changed."""
    tensors = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    versions = tuple((tensor.data_ptr(), tensor._version) for tensor in tensors.values())
    known = _KNOWN.get(model)
    if known is not None and known[0] == versions:
        return known[1]
    digest = hashlib.sha256()
    for name in sorted(tensors):
        values = tensors[name].detach().cpu().contiguous()
        digest.update(f"{name} {tuple(values.shape)} {values.dtype}\n".encode())
        # as bytes, since numpy knows no bfloat16
        digest.update(values.reshape(-1).view(torch.uint8).numpy().tobytes())
    _KNOWN[model] = (versions, digest.hexdigest())
    return digest.hexdigest()
