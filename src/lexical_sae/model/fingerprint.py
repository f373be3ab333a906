"""A hash of what a model computes with, so that an explanation can be tied to it."""

from __future__ import annotations

import hashlib
import weakref
from typing import TYPE_CHECKING, Any

import torch

from lexical_sae.model.dictionary import json_hash
from lexical_sae.model.files import identity_hashes

if TYPE_CHECKING:
    from lexical_sae.model.lexical_sae import LexicalSAE

# What of the config decides the logits, besides the shapes of the weights.
_DECIDES = (
    *("task", "positions", "gate", "saturation", "pooling", "head", "hidden_bias", "max_tokens"),
    *("topk_per_position", "special_token_ids", "function_token_ids", "backbone_kind"),
)
# Of the backbone's config: what saving and loading may change, and no logit depends on.
_UNIMPORTANT = ("transformers_version", "dtype", "torch_dtype", "architectures")
_KNOWN: weakref.WeakKeyDictionary[torch.nn.Module, tuple[Any, str]] = weakref.WeakKeyDictionary()


def model_hash(model: LexicalSAE) -> str:
    """sha256 of weights, labels, tokenizer, dictionary and the options that decide the logits.

    Formed anew after a change. A change through `.data`, which PyTorch does not count, is seen in
    the head and the thresholds only.
    """
    tensors = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    options = json_hash(
        {
            **{name: getattr(model.config, name) for name in _DECIDES},
            # only where it is on: the hashes of before there were windows stay what they are
            **({"windows": True} if model.config.windows else {}),
            **({"unread": model.config.unread} if model.config.unread else {}),
            "backbone": {
                name: value
                for name, value in (model.config.backbone or {}).items()
                if name not in _UNIMPORTANT and not name.startswith("_")
            },
        }
    )
    # the tokenizer by identity: to hash its vocabulary takes longer than to explain a text
    notes = dict(model.sense_notes)
    words = (tuple(model.config.labels), id(model.tokenizer), model.dictionary, notes)
    state = (options, words, _state_of(model, tensors))
    known = _KNOWN.get(model)
    if known is not None and state[2] is not None and known[0] == state:
        return known[1]
    identity = (options, *identity_hashes(model).values())
    digest = hashlib.sha256("\n".join(identity).encode())
    for name in sorted(tensors):
        values = tensors[name].detach().cpu().contiguous()
        digest.update(f"{name} {tuple(values.shape)} {values.dtype}\n".encode())
        # as bytes, since numpy knows no bfloat16
        digest.update(values.reshape(-1).view(torch.uint8).numpy().tobytes())
    _KNOWN[model] = (state, digest.hexdigest())
    return digest.hexdigest()


def dictionary_hash(model: LexicalSAE) -> str:
    assert model.dictionary is not None
    return model.dictionary.hash


def _state_of(model: LexicalSAE, tensors: dict[str, torch.Tensor]) -> Any:
    """What changes when a tensor does; None if it cannot be told (inference tensors)."""
    if any(tensor.is_inference() for tensor in tensors.values()):
        return None
    versions = tuple((tensor.data_ptr(), tensor._version) for tensor in tensors.values())
    small = [*model.head.parameters(), model.lexical.threshold]
    return versions, tuple(float(p.detach().sum()) for p in small)
