"""What the dense twin reads and says of texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from lexical_sae.model.mode import in_mode
from lexical_sae.text.tokenise import encode

if TYPE_CHECKING:
    from lexical_sae.model.dense_twin import DenseTwin

BATCH = 32


@torch.no_grad()
def dense_states(twin: DenseTwin, texts: Sequence[str]) -> Tensor:
    """[N, H] pooled states in the order of the texts; `twin.head` turns them into logits."""
    order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
    found: list[Tensor] = []
    with in_mode(twin, training=False):
        for start in range(0, len(order), BATCH):
            part = [texts[i] for i in order[start : start + BATCH]]
            config = twin.config
            read = encode(twin.tokenizer, part, config.max_tokens, config.special_token_ids)
            found.append(twin.pooled(read.input_ids, read.attention_mask))
    states = torch.cat(found)
    back = torch.empty(len(order), dtype=torch.long)
    back[torch.tensor(order)] = torch.arange(len(order))
    return states[back]
