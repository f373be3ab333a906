"""Texts to the token ids that training reads, once for the whole run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from lexical_sae.text.tokenise import encode
from lexical_sae.training.batching import EncodedTexts

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

CHUNK = 512  # texts tokenised at a time: their padded ids and offsets are held for no longer
SHORTEST_LIMIT = 64


def encode_texts(
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str],
    labels: Sequence[int],
    max_tokens: int,
    structural: Sequence[int],
) -> EncodedTexts:
    """Ids without padding, read exactly as `LexicalSAE.encode` reads them."""
    rows: list[list[int]] = []
    for start in range(0, len(texts), CHUNK):
        batch = encode(tokenizer, texts[start : start + CHUNK], max_tokens, structural)
        for ids, mask in zip(batch.input_ids, batch.attention_mask.bool(), strict=True):
            rows.append(ids[mask].tolist())
    return EncodedTexts(rows, list(labels))


def choose_max_length(encoded: EncodedTexts, longest: int) -> int:
    """The 99th percentile of the texts' lengths, rounded up to a multiple of 8, at least 64."""
    p99 = float(np.percentile(encoded.lengths, 99))
    return min(longest, max(SHORTEST_LIMIT, 8 * math.ceil(p99 / 8)))
