"""Calibrated start: thresholds at the quantile that opens the wanted number of words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from lexical_sae.model.mode import in_mode
from lexical_sae.model.selection import pooled_logits, word_positions
from lexical_sae.text.tokenise import check_texts

if TYPE_CHECKING:
    from lexical_sae.model.lexical_sae import LexicalSAE

MAX_TEXTS = 256  # a quantile of 256 · V logits is well determined
BATCH = 32
LENGTH_TEXTS = 64  # a mean of them is all that is wanted
# four times what training leaves open, per text and per token
DEFAULT_OPEN_WORDS = {"classification": 200, "tagging": 128}
_TOKENS_PER_BATCH = 64  # tagging: positions sampled per batch, each one a row of V logits


def check_open_words(model: LexicalSAE, open_words: int | None) -> int:
    """The number of words to open, the default filled in; refused if there are not so many."""
    words = int(model.lexical.word_keep().sum())
    if open_words is None:
        return max(1, min(DEFAULT_OPEN_WORDS[model.config.task], words // 4))
    if not 1 <= open_words <= words:
        raise ValueError(
            f"open_words is {open_words}; expected 1 to {words}, the words that can open."
        )
    return open_words


@torch.no_grad()
def calibrate_thresholds(
    model: LexicalSAE, texts: Sequence[str], open_words: int | None = None
) -> float:
    """One threshold for all words such that on average `open_words` open per text (per token
    for tagging), never below 0; also measures the spread of the logits for the gate's window.
    """
    check_texts(texts)
    open_words = check_open_words(model, open_words)
    with in_mode(model, training=False):
        rows = torch.cat(list(_logit_rows(model, texts)))  # [R, V]
    if rows.numel() == 0:
        raise ValueError("None of the texts contains a word; expected texts to calibrate on.")
    flat = rows.flatten()
    closed = flat.numel() - open_words * rows.shape[0]
    threshold = max(0.0, float(flat.kthvalue(closed).values)) if closed else 0.0
    model.lexical.threshold.fill_(threshold)
    # never 0: the gate's window is a fraction of it
    model.lexical.spread.fill_(max(float(flat.std()), 1e-6))
    return threshold


@torch.no_grad()
def usual_length(model: LexicalSAE, texts: Sequence[str]) -> float:
    """The mean length of s over texts (tokens for tagging) that open a word; 1 if none does."""
    inputs = model.encode(texts[:LENGTH_TEXTS], model.config.max_tokens).model_inputs()
    with in_mode(model, training=False):
        state = model.tag(**inputs) if model.config.task == "tagging" else model.classify(**inputs)
    length = state.open_words.squared_lengths().sqrt()
    return float(length[length > 0].mean()) if bool((length > 0).any()) else 1.0


def _logit_rows(model: LexicalSAE, texts: Sequence[str]) -> Iterator[Tensor]:
    """Batches of rows [r, words that can open]: pooled logits of each text, or logits at sampled
    tokens."""
    generator = torch.Generator().manual_seed(0)
    lexical = model.lexical
    for start in range(0, min(len(texts), MAX_TEXTS), BATCH):
        part = texts[start : min(start + BATCH, MAX_TEXTS)]
        encoded = model.encode(part, model.config.max_tokens)
        h = model.hidden_states(**encoded.model_inputs()).to(lexical.weight.dtype)
        tagging = model.config.task == "tagging"
        mask = model.word_mask if tagging else model.document_mask
        where = word_positions(mask(**encoded.model_inputs()))
        packed = h[where.document, where.position]
        if tagging:
            pick = torch.randperm(len(packed), generator=generator)[:_TOKENS_PER_BATCH]
            rows = packed[pick.to(packed.device)] @ lexical.weight.T + lexical.bias
        else:
            pooled = pooled_logits(packed, lexical.weight, where.document, where.batch)
            pooled += lexical.bias
            rows = pooled[torch.isfinite(pooled).all(1)]  # texts without words say nothing
        yield rows[:, lexical.word_keep()]
