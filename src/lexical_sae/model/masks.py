"""Where words may open in a padded batch of tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from lexical_sae.model.config import LexicalSAEConfig


def word_positions(config: LexicalSAEConfig, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
    """[B, L]: true at real words; false at padding and special tokens."""
    special = torch.tensor(config.special_token_ids, device=input_ids.device)
    return attention_mask.bool() & ~torch.isin(input_ids, special)


def content_positions(
    config: LexicalSAEConfig, input_ids: Tensor, attention_mask: Tensor
) -> Tensor:
    """[B, L]: true at words that carry meaning; for a text of function words only, at those."""
    words = word_positions(config, input_ids, attention_mask)
    function = torch.tensor(config.function_token_ids, device=input_ids.device)
    content = words & ~torch.isin(input_ids, function)
    return torch.where(content.any(1, keepdim=True), content, words)


def checked_inputs(input_ids: Tensor, attention_mask: Tensor | None) -> tuple[Tensor, Tensor]:
    if attention_mask is None:
        attention_mask = torch.ones_like(input_ids)
    fits = input_ids.dim() == 2 and input_ids.shape == attention_mask.shape
    if not fits or input_ids.numel() == 0:
        raise ValueError(
            f"input_ids has shape {tuple(input_ids.shape)} and attention_mask "
            f"{tuple(attention_mask.shape)}; expected the same [batch, length], not empty."
        )
    return input_ids, attention_mask
