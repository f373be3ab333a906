"""The lexical layer: hidden states → open words, through the sliced decoder and the gate."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from lexical_sae.model.config import LexicalSAEConfig
from lexical_sae.model.gate import WINDOW_REACH, apply_gate, nonnegative_threshold
from lexical_sae.model.open_words import OpenWords, one_source_each
from lexical_sae.model.pair_logits import pair_logits
from lexical_sae.model.pooling import (
    attention_weights,
    keep_top,
    pool_attention,
    pool_max,
)
from lexical_sae.model.precision import check_precision, in_full_precision
from lexical_sae.model.selection import (
    WordPositions,
    select_documents,
    select_positions,
    word_positions,
)


class LexicalLayer(nn.Module):
    """Decoder rows of the dictionary, thresholds, the suppression mask and the pooling scores.

    Both tasks use the same parameters: `documents` pools over positions, `positions` does not.
    """

    token_ids: Tensor
    keep: Tensor
    spread: Tensor

    def __init__(self, config: LexicalSAEConfig, size: int) -> None:
        super().__init__()
        words = config.dictionary_size
        self.gate = config.gate
        self.window = config.window
        self.window_width = config.window_width
        self.saturation = config.saturation
        self.pooling = config.pooling
        self.topk = config.topk_per_position
        self.weight = nn.Parameter(torch.empty(words, size))  # E [V, H]
        self.bias = nn.Parameter(torch.empty(words))  # b [V]
        self.threshold = nn.Parameter(torch.empty(words))  # θ [V], raw
        self.attention = nn.Parameter(torch.empty(size)) if self.pooling == "attention" else None
        self.register_buffer("token_ids", torch.zeros(words, dtype=torch.long))
        self.register_buffer("keep", torch.ones(words, dtype=torch.bool))  # False: suppressed
        self.register_buffer("spread", torch.ones(()))  # std of the lexical logits

    def reset(self) -> None:
        nn.init.normal_(self.weight, std=0.02)
        nn.init.zeros_(self.bias)
        nn.init.zeros_(self.threshold)
        if self.attention is not None:
            nn.init.zeros_(self.attention)  # a plain mean at the start
        nn.init.ones_(self.keep)
        nn.init.ones_(self.spread)

    @torch.no_grad()
    def suppress(self, coordinates: Iterable[int]) -> None:
        indices = sorted(set(coordinates))
        for v in indices:
            if not isinstance(v, int):
                raise ValueError(
                    f"{v!r} is no coordinate; expected a number, for instance from "
                    "model.dictionary.coordinates(word)."
                )
        words = self.keep.numel()
        outside = [v for v in indices if not 0 <= v < words]
        if outside:
            raise ValueError(
                f"Coordinate {outside[0]} is outside the dictionary; expected 0 to {words - 1}."
            )
        self.keep[indices] = False

    @property
    def width(self) -> Tensor:
        """Width of the straight-through window, in units of the logits."""
        return self.spread * self.window_width

    def default_reach(self) -> float | Tensor:
        """How far below θ pairs are kept: only the jump gate in training has use for them."""
        if self.training and self.gate == "jump":
            return self.width * WINDOW_REACH[self.window]
        return 0.0

    @in_full_precision
    def documents(
        self, h: Tensor, mask: Tensor, *, reach: float | Tensor | None = None
    ) -> OpenWords:
        """h [B, L, H], mask [B, L] (true at word positions) → open words of shape (B,)."""
        per_position = self.pooling == "attention" or (self.topk > 0 and not self.training)
        if per_position:
            tokens = self.positions(h, mask, reach=reach)
            if self.attention is None:
                return pool_max(tokens)
            return pool_attention(tokens, self._attention_weights(h, mask, self.attention))
        where = word_positions(mask)
        packed = self._packed(h, where)
        theta = nonnegative_threshold(self.threshold)
        document, word, source = select_documents(
            packed.detach(), self.weight, self.bias, self._bound(theta, reach), where
        )
        z = pair_logits(packed, self.weight, self.bias, source, word)
        return self._gated(z, theta, document, word, where.position[source], (where.batch,))

    @in_full_precision
    def positions(
        self, h: Tensor, mask: Tensor, *, reach: float | Tensor | None = None
    ) -> OpenWords:
        """h [B, L, H], mask [B, L] → open words of shape (B, L)."""
        where = word_positions(mask)
        packed = self._packed(h, where)
        theta = nonnegative_threshold(self.threshold)
        source, word = select_positions(
            packed.detach(), self.weight, self.bias, self._bound(theta, reach)
        )
        z = pair_logits(packed, self.weight, self.bias, source, word)
        tokens = self._gated(
            z, theta, where.flat[source], word, where.position[source], (where.batch, where.length)
        )
        # suppressed words are gone by now: none takes one of the k places
        return keep_top(tokens, self.topk) if self.topk > 0 and not self.training else tokens

    def _attention_weights(self, h: Tensor, mask: Tensor, query: Tensor) -> Tensor:
        """[B, L]: each text's weights over its word positions, 0 elsewhere."""
        where = word_positions(mask)
        weight = attention_weights(self._packed(h, where) @ query, where)
        empty = weight.new_zeros(mask.shape)
        return empty.index_put((where.document, where.position), weight)

    def _packed(self, h: Tensor, where: WordPositions) -> Tensor:
        check_precision(self.weight)
        packed = h[where.document, where.position].to(self.weight.dtype)  # [N, H]
        if not bool(torch.isfinite(packed).all()):
            # compared with a threshold, NaN would look like a word that is not open
            raise ValueError(
                "The backbone's hidden states contain NaN or infinity; check its weights and, in "
                "half precision, its range."
            )
        return packed

    def _bound(self, theta: Tensor, reach: float | Tensor | None) -> Tensor:
        """What a logit must exceed; suppressed words are out of reach from the start."""
        bound = theta.detach() - (self.default_reach() if reach is None else reach)
        return bound.masked_fill(~self.keep, torch.inf)

    def _gated(
        self,
        z: Tensor,
        theta: Tensor,
        row: Tensor,
        word: Tensor,
        position: Tensor,
        shape: tuple[int, ...],
    ) -> OpenWords:
        value = apply_gate(
            z,
            theta[word],
            gate=self.gate,
            width=self.width,
            window=self.window,
            saturation=self.saturation,
        )
        found = one_source_each(
            row, word, value, z, position, shape=shape, dictionary_size=self.weight.shape[0]
        )
        # without a window, candidates that the gate left closed serve nothing
        return found if self.training else found.subset(found.value > 0)
