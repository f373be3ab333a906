"""Explainers that look inside of a model: attention, and captum's gradients at the embeddings."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lexical_sae.evaluation.input_game import MaskedText
from lexical_sae.evaluation.peers import IG_STEPS, missing_package
from lexical_sae.evaluation.perturbation import Floats
from lexical_sae.model.mode import in_mode


@contextlib.contextmanager
def eager_attention(backbone: Any) -> Iterator[None]:
    """Fused kernels give no weights; for the length of the block the plain form is used."""
    before = backbone.config._attn_implementation
    backbone.set_attn_implementation("eager")
    try:
        yield
    finally:
        backbone.set_attn_implementation(before)


@torch.no_grad()
def attention_received(model: Any, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
    """[B, L]: the last layer's attention to each token, mean over heads and real tokens."""
    with in_mode(model, training=False), eager_attention(model.backbone):
        output = model.backbone(
            input_ids=input_ids, attention_mask=attention_mask, output_attentions=True
        )
    weights: Tensor = output.attentions[-1].mean(1)  # [B, L, L] from row to column
    real = attention_mask.to(weights.dtype)
    return (weights * real[:, :, None]).sum(1) / real.sum(1, keepdim=True) * real


def attention_scores(text: MaskedText) -> Floats:
    """[L] of one text's tokens."""
    found = attention_received(text.model, text.ids[None], text.attention[None])[0]
    return np.asarray(found.double().numpy())


def embedding_gradients(text: MaskedText, *, steps: int = IG_STEPS) -> Floats:
    """[L]: captum's Integrated Gradients at the word embeddings, from mask tokens, summed over the
    dimensions of each token."""
    try:
        from captum.attr import LayerIntegratedGradients
    except ImportError:
        raise missing_package("captum") from None
    model = text.model

    def logits(ids: Tensor, attention: Tensor) -> Tensor:
        found: Tensor = model(ids, attention, task="classification").logits
        return found

    with torch.no_grad(), in_mode(model, training=False):
        state = model(text.ids[None], text.attention[None], task="classification")
    if hasattr(state, "open_words") and not len(state.open_words):
        return np.zeros(len(text.ids))  # no word is open: the logits depend on nothing
    baseline = text.ids.clone()
    for word in text.words:  # special tokens stay what they are
        baseline[list(word.positions)] = text.masked
    with in_mode(model, training=False):
        found = LayerIntegratedGradients(logits, model.backbone.get_input_embeddings()).attribute(
            text.ids[None],
            baselines=baseline[None],
            additional_forward_args=(text.attention[None],),
            target=text.label,
            n_steps=steps,
            internal_batch_size=steps,
        )
    return np.asarray(found[0].sum(-1).detach().double().numpy())
