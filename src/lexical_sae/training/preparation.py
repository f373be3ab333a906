"""Settings that change the model itself before training: frozen parts, dropout."""

from __future__ import annotations

from typing import Any

from torch import nn
from torch.nn.modules.dropout import _DropoutNd

from lexical_sae.model.lexical_sae import LexicalSAE
from lexical_sae.training.settings import Settings


def prepare_model(model: nn.Module, settings: Settings) -> None:
    """Freeze embeddings and decoder rows and set dropout, as far as the settings ask."""
    backbone: Any = model.backbone
    if settings.freeze_embeddings:
        # the dictionary's rows are parameters of their own and still learn
        backbone.get_input_embeddings().requires_grad_(False)
    frozen = settings.freeze_decoder or settings.dictionary_rate_factor == 0
    if frozen and isinstance(model, LexicalSAE):
        model.lexical.weight.requires_grad_(False)
    if settings.dropout is not None:
        set_dropout(backbone, settings.dropout)
    if isinstance(model, LexicalSAE):
        model.word_dropout = settings.word_dropout


def set_dropout(backbone: nn.Module, rate: float) -> None:
    """Set the rate of every dropout layer, and of the dropout that some families keep as a bare
    number for fused attention (`attention_dropout` in ModernBERT, `dropout` in ESM).

    The backbone's config stays as it is: this belongs to a run, not to the model that is saved.
    Not covered: whole layers dropped (`layerdrop`, `drop_path`), and places where a family built
    no dropout because its config had zero there (ModernBERT's `out_drop`).
    """
    for module in backbone.modules():
        if isinstance(module, _DropoutNd):
            module.p = rate
        for name, value in list(vars(module).items()):
            # ESM's token_dropout is a switch, not a rate
            is_rate = isinstance(value, (int, float)) and not isinstance(value, bool)
            if is_rate and "dropout" in name:
                setattr(module, name, rate)
