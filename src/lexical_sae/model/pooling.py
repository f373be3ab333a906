"""From token positions to documents, on pairs: max and attention pooling, and top-k per position.

Max pooling of a whole batch goes through `select_documents`, which pools before it gates. The
forms here start from gated positions; they serve attention pooling and top-k, and for max
pooling they are the slower road to the same result.
"""

from __future__ import annotations

import torch
from torch import Tensor

from lexical_sae.model.open_words import (
    OpenWords,
    Sources,
    largest_first,
    one_source_each,
    rank_in_row,
)
from lexical_sae.model.selection import WordPositions

POOLINGS = ("max", "attention")


def attention_weights(score: Tensor, where: WordPositions) -> Tensor:
    """Softmax of score [N] over the word positions of each document: [N], sums to 1 in each."""
    top = score.new_full((where.batch,), -torch.inf)
    top = top.scatter_reduce(0, where.document, score.detach(), "amax")
    weight = torch.exp(score - top[where.document])
    total = weight.new_zeros(where.batch).index_add(0, where.document, weight)
    return weight / total[where.document]


def _document_groups(tokens: OpenWords) -> tuple[Tensor, Tensor, Tensor]:
    """Order of the pairs by (document, word), the group of each in that order, the group keys."""
    length = tokens.shape[1]
    key = torch.div(tokens.row, length, rounding_mode="floor") * tokens.dictionary_size
    key = key + tokens.word
    order = torch.argsort(key, stable=True)  # stable: within a group positions ascend
    keys, group = torch.unique_consecutive(key[order], return_inverse=True)
    return order, group, keys


def pool_attention(tokens: OpenWords, weight: Tensor) -> OpenWords:
    """s[b, v] = Σ_l weight[b, l] · s[b, l, v]; weight [B, L]. Every position keeps its share."""
    order, group, keys = _document_groups(tokens)
    share = tokens.value * weight.reshape(-1)[tokens.row]  # [P]
    value = share.new_zeros(keys.numel()).index_add(0, group, share[order])
    sources = Sources(
        pair=group,
        position=(tokens.row % tokens.shape[1])[order],
        value=share[order],
        logit=tokens.sources.logit[order],
    )
    size = tokens.dictionary_size
    row = torch.div(keys, size, rounding_mode="floor")
    return OpenWords(row, keys % size, value, sources, tokens.shape[:1], size, tokens.routes)


def pool_max(tokens: OpenWords) -> OpenWords:
    """s[b, v] = max_l s[b, l, v], with the first position that reaches it."""
    key = torch.div(tokens.row, tokens.shape[1], rounding_mode="floor") * tokens.dictionary_size
    best = largest_of_each(key + tokens.word, tokens.value)  # in the order of (document, word)
    return one_source_each(
        row=torch.div(tokens.row[best], tokens.shape[1], rounding_mode="floor"),
        word=tokens.word[best],
        value=tokens.value[best],
        logit=tokens.sources.logit[best],
        position=tokens.row[best] % tokens.shape[1],
        shape=tokens.shape[:1],
        dictionary_size=tokens.dictionary_size,
        routes=tokens.routes,
    )


def largest_of_each(key: Tensor, value: Tensor) -> Tensor:
    """[K]: the index of each key's largest value, keys ascending; of equal values the first."""
    order = largest_first(key, value)
    sorted_key = key[order]
    first = torch.ones_like(sorted_key, dtype=torch.bool)
    first[1:] = sorted_key[1:] != sorted_key[:-1]
    return order[first]


def keep_top(tokens: OpenWords, k: int) -> OpenWords:
    """Only the k largest values of each row (ties: the lower word); for inference."""
    return tokens.subset(rank_in_row(tokens.row, tokens.value, tokens.rows) < k)
