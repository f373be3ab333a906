"""Texts to the token ids that training reads, once for the whole run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from lexical_sae.text.alignment import sentence_windows
from lexical_sae.text.dataset import TextDataset
from lexical_sae.text.tokenise import token_ids
from lexical_sae.training.batching import EncodedSentences, EncodedTexts

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

CHUNK = 4096  # texts tokenised at a time: what else a tokenizer notes of them is held for no longer
SHORTEST_LIMIT = 64


def encode_texts(
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str],
    labels: Sequence[int],
    max_tokens: int | None,
    structural: Sequence[int],
) -> EncodedTexts:
    """Ids without padding, read exactly as `LexicalSAE.encode` reads them."""
    rows: list[list[int]] = []
    for start in range(0, len(texts), CHUNK):
        rows += token_ids(tokenizer, texts[start : start + CHUNK], max_tokens, structural)
    return EncodedTexts(rows, list(labels))


def encode_sentences(
    tokenizer: PreTrainedTokenizerBase,
    sentences: Sequence[Sequence[str]],
    tags: Sequence[Sequence[int]],
    max_tokens: int,
    structural: Sequence[int],
) -> EncodedSentences:
    """Every sentence in one window, or in several that overlap; each word is decided once."""
    windows = sentence_windows(tokenizer, sentences, max_tokens, structural)
    if not windows:
        raise ValueError(
            f"None of the {len(sentences):,} sentences has a word that the tokenizer reads; check "
            "the data and the backbone."
        )
    return EncodedSentences(windows, tags)


def encode_dataset(
    tokenizer: PreTrainedTokenizerBase,
    data: TextDataset,
    max_tokens: int | None,
    structural: Sequence[int],
) -> EncodedTexts:
    """The rows of a dataset, by its task; texts are not cut if `max_tokens` is None."""
    if data.task == "tagging":
        assert max_tokens is not None
        return encode_sentences(tokenizer, data.tokens, data.tags, max_tokens, structural)
    return encode_texts(tokenizer, data.texts, data.labels, max_tokens, structural)


def cut_texts(
    tokenizer: PreTrainedTokenizerBase,
    data: TextDataset,
    whole: EncodedTexts,
    max_tokens: int,
    structural: Sequence[int],
) -> EncodedTexts:
    """What `encode_dataset` gives at a smaller limit: texts that fit it are not read again."""
    if data.task == "tagging":
        return encode_dataset(tokenizer, data, max_tokens, structural)
    rows = list(whole.input_ids)
    long = [i for i, length in enumerate(whole.lengths) if length > max_tokens]
    again = encode_dataset(tokenizer, data.select(long), max_tokens, structural)
    for i, ids in zip(long, again.input_ids, strict=True):
        rows[i] = ids
    return EncodedTexts(rows, whole.labels)


def choose_max_length(encoded: EncodedTexts, longest: int) -> int:
    """The 99th percentile of the texts' lengths, rounded up to a multiple of 8, at least 64."""
    p99 = float(np.percentile(encoded.lengths, 99))
    return min(longest, max(SHORTEST_LIMIT, 8 * math.ceil(p99 / 8)))
