"""Backbones: any masked language model, or any encoder with a lexical head put on top.

What the lexical layer needs is h, the input of the output embedding. For a masked LM the output
embedding is taken out and an identity put in its place, so that the model's "logits" are h
itself and the [B, L, V] product is never made. No family needs a branch of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import (
    MODEL_FOR_MASKED_LM_MAPPING,
    MODEL_MAPPING,
    AutoConfig,
    AutoModel,
    AutoModelForMaskedLM,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from lexical_sae.model.hub import model_folder
from lexical_sae.model.loading import first_line, loading
from lexical_sae.text.wheels import wheel_model_folder

WHEEL_PREFIX = "wheel:"
# fp32 whatever the checkpoint has: half precision is slow on a CPU, and is asked for at loading
_SAFE: dict[str, Any] = {"use_safetensors": True, "dtype": torch.float32}
_UNFIT = (
    "{} does not end in a linear decoder over its vocabulary ({}); expected a masked language "
    "model whose logits are h·E + b."
)


class PassThrough(nn.Module):
    """Stands where the output embedding stood."""

    weight = None
    bias = None

    def forward(self, h: Tensor) -> Tensor:
        return h


class LexicalTransform(nn.Module):
    """Dense + LayerNorm between an encoder and its tied decoder; starts as the identity map."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.dense = nn.Linear(size, size)
        self.norm = nn.LayerNorm(size)

    def reset(self) -> None:
        nn.init.eye_(self.dense.weight)
        nn.init.zeros_(self.dense.bias)
        nn.init.ones_(self.norm.weight)
        nn.init.zeros_(self.norm.bias)

    def forward(self, h: Tensor) -> Tensor:
        out: Tensor = self.norm(self.dense(h))
        return out


@dataclass(frozen=True, eq=False)
class LoadedBackbone:
    """A backbone without its decoder, and the decoder's rows to slice the dictionary from."""

    model: PreTrainedModel
    kind: str  # "masked_lm" | "encoder"
    decoder_weight: Tensor  # [vocabulary, H]
    decoder_bias: Tensor  # [vocabulary]


def resolve_name(name_or_path: str | Path) -> str:
    """The folder behind a path, a `wheel:…` name or a hub name."""
    name = str(name_or_path)
    if name.startswith(WHEEL_PREFIX):
        return str(wheel_model_folder(name[len(WHEEL_PREFIX) :]))
    return str(model_folder(name))


def load_backbone(name: str) -> LoadedBackbone:
    """From a folder or hub name: as a masked LM if the checkpoint has its head, else an encoder."""
    what = f"The backbone {name!r}"
    advice = "expected a folder with config.json and safetensors weights of a known architecture."
    with loading(what, advice):
        config = AutoConfig.from_pretrained(name)
    if config.model_type == "lexical-sae":
        raise ValueError(
            f"{name} holds a lexical-sae model, which is no backbone; load it with "
            "LexicalSAE.from_pretrained."
        )
    if _has_masked_lm(config):
        with loading(what, advice):
            model, info = AutoModelForMaskedLM.from_pretrained(
                name, config=config, output_loading_info=True, **_SAFE
            )
        if not _head_is_missing(model, info["missing_keys"]):
            return checked_masked_lm(model)
        del model
    with loading(what, advice):
        encoder = AutoModel.from_pretrained(name, **_SAFE)
    return strip_encoder(encoder)


def wrap_backbone(model: PreTrainedModel) -> LoadedBackbone:
    """From a model object (which is changed): a masked LM or a bare encoder of its family."""
    if _is_listed(model, MODEL_FOR_MASKED_LM_MAPPING):
        return checked_masked_lm(model)
    if _is_listed(model, MODEL_MAPPING):
        return strip_encoder(model)
    raise ValueError(
        f"{type(model).__name__} is neither the masked language model nor the bare encoder of its "
        "family; load it with AutoModelForMaskedLM or AutoModel."
    )


def _is_listed(model: PreTrainedModel, mapping: Any) -> bool:
    """Whether transformers would rebuild this very class from its config."""
    listed = mapping.get(type(model.config), ())
    return isinstance(model, listed if isinstance(listed, tuple) else (listed,))


@torch.no_grad()
def checked_masked_lm(model: PreTrainedModel) -> LoadedBackbone:
    """Strip a masked LM and make sure that h·E + b are the logits it gave before."""
    model.eval()
    ids = torch.arange(1, 5, device=model.device)[None] % model.config.vocab_size
    try:
        expected = model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits
        loaded = strip_masked_lm(model)
        h = backbone_states(loaded.model, loaded.kind, ids, torch.ones_like(ids))
        logits = h @ loaded.decoder_weight.T + loaded.decoder_bias
        same = torch.allclose(logits, expected, rtol=1e-3, atol=1e-3 * float(expected.abs().max()))
    except (RuntimeError, AttributeError, TypeError) as error:
        raise ValueError(_UNFIT.format(type(model).__name__, first_line(error))) from error
    if not same:
        raise ValueError(_UNFIT.format(type(model).__name__, "its logits are computed otherwise"))
    return loaded


def rebuild_backbone(config: dict[str, Any], kind: str) -> LoadedBackbone:
    """The empty backbone of a saved model, from its own configuration, without any hub."""
    settings = dict(config)
    backbone_config = AutoConfig.for_model(settings.pop("model_type"), **settings)
    if kind == "masked_lm":
        return strip_masked_lm(AutoModelForMaskedLM.from_config(backbone_config))
    return strip_encoder(AutoModel.from_config(backbone_config))


def strip_masked_lm(model: PreTrainedModel) -> LoadedBackbone:
    decoder: Any = model.get_output_embeddings()
    if not isinstance(getattr(decoder, "weight", None), Tensor) or decoder.weight.dim() != 2:
        raise ValueError(
            f"{type(model).__name__} has {type(decoder).__name__} as its output embedding; "
            "expected a linear decoder with one row per vocabulary entry."
        )
    weight = decoder.weight.detach()
    bias = weight.new_zeros(weight.shape[0]) if decoder.bias is None else decoder.bias.detach()
    _drop_outer_bias(model, decoder)
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if child is decoder:
                setattr(module, name, PassThrough())
    _forget_ties(model)
    # some families initialise the decoder from the top, where it no longer is
    model._is_hf_initialized = True
    return LoadedBackbone(model, "masked_lm", weight, bias)


def strip_encoder(model: PreTrainedModel) -> LoadedBackbone:
    embedding: Any = model.get_input_embeddings()
    if getattr(model, "pooler", None) is not None:
        model.pooler = None  # type: ignore[assignment]  # it would be trained by nothing
    _forget_ties(model)
    weight = embedding.weight.detach()
    if weight.shape[1] != model.config.hidden_size:
        raise ValueError(
            f"{type(model).__name__} embeds tokens in {weight.shape[1]} dimensions but computes in "
            f"{model.config.hidden_size}, so its embedding cannot serve as decoder; use a masked "
            "language model of this family."
        )
    return LoadedBackbone(model, "encoder", weight, weight.new_zeros(weight.shape[0]))


def _drop_outer_bias(model: PreTrainedModel, decoder: nn.Module) -> None:
    """Some families hold the decoder's bias once more, one level up, and tie the two; without the
    decoder nothing uses it. Told by the family's own table of ties, since nothing is tied yet
    while a model is being loaded."""
    ties = getattr(model, "_tied_weights_keys", None) or {}
    for name, module in model.named_modules():
        if module is decoder:
            outer = ties.get(f"{name}.bias") if isinstance(ties, dict) else None
            if outer is not None:
                path, _, attribute = outer.rpartition(".")
                owner = model.get_submodule(path)
                setattr(owner, attribute, None)
                owner._is_hf_initialized = True  # type: ignore[assignment]  # nothing left to do


def _forget_ties(model: PreTrainedModel) -> None:
    """The decoder is gone, so nothing is tied; said to the config and to transformers."""
    model.config.tie_word_embeddings = False
    for module in model.modules():
        if isinstance(module, PreTrainedModel):
            module.all_tied_weights_keys = {}


def backbone_states(
    model: PreTrainedModel, kind: str, input_ids: Tensor, attention_mask: Tensor
) -> Tensor:
    """h [B, L, H], what enters the (removed) output embedding."""
    return states_of_output(model(input_ids=input_ids, attention_mask=attention_mask), kind)


def states_of_output(output: Any, kind: str) -> Tensor:
    """h out of what a backbone's forward pass gives."""
    h: Tensor = output.logits if kind == "masked_lm" else output.last_hidden_state
    return h


def length_limit(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase | None) -> int:
    """The longest sequence that backbone and tokenizer can take, special tokens included; None
    where the tokenizer is not here."""
    limit = 10**6 if tokenizer is None else int(min(tokenizer.model_max_length, 10**6))
    positions = getattr(model.config, "max_position_embeddings", None)
    if not isinstance(positions, int) or positions <= 0:
        return limit
    for module in model.modules():
        if isinstance(module, nn.Embedding) and module.num_embeddings == positions:
            # families that count positions from padding_idx + 1 (RoBERTa, MPNet) lose those rows
            reserved = 0 if module.padding_idx is None else module.padding_idx + 1
            return min(limit, positions - reserved)
    return min(limit, positions)


def _has_masked_lm(config: Any) -> bool:
    from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES

    return config.model_type in MODEL_FOR_MASKED_LM_MAPPING_NAMES


def _head_is_missing(model: PreTrainedModel, missing: set[str] | list[str]) -> bool:
    """Whether the checkpoint lacks weights of the head (its tied decoder aside)."""
    prefix = model.base_model_prefix + "."
    decoder = model.get_output_embeddings()
    tied = {id(p) for p in decoder.parameters()} if decoder is not None else set()
    named = dict(model.named_parameters(remove_duplicate=False))
    return any(
        not key.startswith(prefix) and key in named and id(named[key]) not in tied
        for key in missing
    )
