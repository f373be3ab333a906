"""Texts to what a model reads of them: within its limit, without what it leaves unread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lexical_sae.model.backbone import length_limit
from lexical_sae.text.tokenise import Encoded, encode

if TYPE_CHECKING:
    from lexical_sae.model.lexical_sae import LexicalSAE


def encode_for(model: LexicalSAE, texts: Sequence[str], max_tokens: int | None) -> Encoded:
    """Cut at `max_tokens`, by default the model's own unless it reads windows."""
    config, tokenizer = model.config, model.tokenizer
    if tokenizer is None:
        raise ValueError("This model has no tokenizer; load it with from_pretrained.")
    limit = None if config.windows else config.max_tokens
    if max_tokens is not None:  # the config's own was checked when the model was built
        limit, longest = max_tokens, length_limit(model.backbone, tokenizer)
        if limit > longest:
            raise ValueError(f"max_tokens is {limit}; this backbone reads at most {longest}.")
    special = config.special_token_ids
    return encode(tokenizer, texts, limit, special, model.device, config.unread)
