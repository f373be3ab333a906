"""Calibrated start: thresholds at the quantile that opens the wanted number of words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from lexical_sae.model.selection import pooled_logits, word_positions

if TYPE_CHECKING:
    from lexical_sae.model.lexical_sae import LexicalSAE

MAX_TEXTS = 256  # enough to fix a quantile to within a few per cent
BATCH = 32
DEFAULT_OPEN_WORDS = 200  # four times the fifty or so that training leaves open
_TOKENS_PER_BATCH = 64  # tagging: positions sampled per batch, each one a row of V logits


@torch.no_grad()
def calibrate_thresholds(model: LexicalSAE, texts: Sequence[str], open_words: int) -> float:
    """One threshold for all words such that on average `open_words` open per text (per token
    for tagging), never below 0; also measures the spread of the logits for the gate's window.
    """
    words = len(model.lexical.keep)
    if not 1 <= open_words < words:
        raise ValueError(f"open_words is {open_words}; expected 1 to {words - 1}.")
    rows = torch.cat(list(_logit_rows(model, texts)))  # [R, V]
    if rows.numel() == 0:
        raise ValueError("None of the texts contains a word; expected texts to calibrate on.")
    flat = rows.flatten()
    kept = flat.numel() - round(open_words * rows.shape[0])
    threshold = max(0.0, float(flat.kthvalue(kept).values))
    model.lexical.threshold.fill_(threshold)
    model.lexical.spread.fill_(float(flat.std()))
    return threshold


def _logit_rows(model: LexicalSAE, texts: Sequence[str]) -> Iterator[Tensor]:
    """Batches of rows [r, V]: pooled logits of each text, or logits at sampled tokens."""
    was_training = model.training
    model.eval()
    generator = torch.Generator().manual_seed(0)
    lexical = model.lexical
    for start in range(0, min(len(texts), MAX_TEXTS), BATCH):
        encoded = model.encode(texts[start : min(start + BATCH, MAX_TEXTS)])
        h = model.hidden_states(**encoded.model_inputs()).to(lexical.weight.dtype)
        where = word_positions(model.word_mask(**encoded.model_inputs()))
        packed = h[where.document, where.position]
        if model.config.task == "tagging":
            pick = torch.randperm(len(packed), generator=generator)[:_TOKENS_PER_BATCH]
            yield packed[pick.to(packed.device)] @ lexical.weight.T + lexical.bias
        else:
            pooled = pooled_logits(
                packed, lexical.weight, lexical.bias, where.document, where.batch
            )
            yield pooled[torch.isfinite(pooled).all(1)]  # texts without words say nothing
    model.train(was_training)
