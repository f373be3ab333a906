"""The dense twin: the same backbone with an ordinary head, to compare with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PretrainedConfig, PreTrainedModel

from lexical_sae.model.backbone import (
    LoadedBackbone,
    backbone_states,
    length_limit,
    load_backbone,
    rebuild_backbone,
    resolve_name,
)
from lexical_sae.model.loading import quiet
from lexical_sae.text.tokenise import check_tokenizer, load_tokenizer, structural_ids


class DenseTwinConfig(PretrainedConfig):
    """Shape of a `DenseTwin`."""

    model_type = "lexical-sae-dense-twin"

    def __init__(
        self,
        labels: Sequence[str] = ("0", "1"),
        task: str = "classification",
        max_tokens: int = 128,
        head_dropout: float = 0.1,
        special_token_ids: Sequence[int] = (),
        backbone_kind: str = "encoder",
        backbone: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.labels = list(labels)
        self.task = task
        self.max_tokens = max_tokens
        self.head_dropout = head_dropout
        self.special_token_ids = list(special_token_ids)
        self.backbone_kind = backbone_kind
        self.backbone = backbone


@dataclass(frozen=True, eq=False)
class DenseState:
    """What the twin's forward pass leaves: logits, and nothing that explains them."""

    logits: Tensor  # [B, C], or [B, L, C] for tagging

    def at_rows(self, where: Tensor) -> DenseState:
        """Only the decisions where the boolean `where` holds."""
        return DenseState(self.logits[where])


class DenseTwin(PreTrainedModel):
    """Mean over all tokens (none for tagging), dropout, one linear layer."""

    config_class = DenseTwinConfig
    config: DenseTwinConfig
    base_model_prefix = "dense_twin"
    main_input_name = "input_ids"

    def __init__(self, config: DenseTwinConfig, backbone: LoadedBackbone | None = None) -> None:
        super().__init__(config)
        loaded = backbone or rebuild_backbone(config.backbone or {}, config.backbone_kind)
        self.dropout = nn.Dropout(config.head_dropout)
        self.head = nn.Linear(loaded.decoder_weight.shape[1], len(config.labels))
        if backbone is None:
            self.backbone = loaded.model
            self.post_init()
        else:
            self.post_init()
            self.backbone = loaded.model
        self.tokenizer: Any = None

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=0.02)
            nn.init.zeros_(module.bias)

    @classmethod
    def from_backbone(
        cls,
        backbone: str | Path,
        labels: Sequence[str],
        task: str = "classification",
        *,
        seed: int = 0,
    ) -> DenseTwin:
        name = resolve_name(backbone)
        loaded, tokenizer = load_backbone(name), check_tokenizer(load_tokenizer(name))
        config = DenseTwinConfig(
            labels=labels,
            task=task,
            max_tokens=min(128, length_limit(loaded.model, tokenizer)),
            special_token_ids=structural_ids(tokenizer),
            backbone_kind=loaded.kind,
            backbone=loaded.model.config.to_dict(),
        )
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = cls(config, loaded)
        model.tokenizer = tokenizer
        return model

    def save_pretrained(self, save_directory: Any, **kwargs: Any) -> None:  # type: ignore[override]
        with quiet():
            super().save_pretrained(save_directory, **kwargs)
        self.tokenizer.save_pretrained(save_directory)

    @classmethod
    def from_pretrained(cls, folder: Any, *args: Any, **kwargs: Any) -> DenseTwin:  # type: ignore[override]
        with quiet():  # reading a tokenizer warns of every model type that transformers has not
            model: DenseTwin = super().from_pretrained(
                folder, *args, use_safetensors=True, **kwargs
            )
            model.tokenizer = load_tokenizer(folder)
        return model

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        task: str | None = None,
        where: Tensor | None = None,
    ) -> DenseState:
        """Logits of each text, or of each token; `where` is for the lexical model only."""
        states = self._states if task == "tagging" else self.pooled
        read = self.dropout(states(input_ids, attention_mask))
        with torch.autocast(read.device.type, enabled=False):  # as the words' head does
            return DenseState(self.head(read))

    def pooled(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """[B, H]: the mean over all tokens, which the head reads."""
        h = self._states(input_ids, attention_mask)
        real = attention_mask.unsqueeze(-1).to(h.dtype)
        mean: Tensor = (h * real).sum(1) / real.sum(1).clamp(min=1)
        return mean

    def _states(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """h [B, L, H]."""
        kind = self.config.backbone_kind
        h = backbone_states(self.backbone, kind, input_ids, attention_mask)
        return h.to(self.head.weight.dtype)
