"""The lexical layer: hidden states → open words, through the sliced decoder and the gate."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

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
from lexical_sae.model.screen import LowTable, low_table, screens_low
from lexical_sae.model.selection import (
    WordPositions,
    select_documents,
    select_positions,
    word_positions,
)
from lexical_sae.model.senses import SensePairs, SenseRouter, merged, pool_senses, sense_pairs


def by_word(layer: LexicalLayer, open_words: OpenWords) -> OpenWords:
    """The same pairs under the words that they are senses of: which words are open, however they
    are meant. No longer one pair per word."""
    return replace(open_words, word=layer.word_of(open_words.word))


class LexicalLayer(nn.Module):
    """Decoder rows of the dictionary, thresholds, the suppression mask and the pooling scores.

    Both tasks use the same parameters: `documents` pools over positions, `positions` does not.
    """

    token_ids: Tensor
    keep: Tensor
    spread: Tensor

    def __init__(self, config: LexicalSAEConfig, size: int) -> None:
        super().__init__()
        coordinates = config.dictionary_size  # V
        words = coordinates - len(config.expanded_words) * (config.senses - 1)  # V₀
        self.gate = config.gate
        self.window = config.window
        self.window_width = config.window_width
        self.saturation = config.saturation
        self.pooling = config.pooling
        self.topk = config.topk_per_position
        self.weight = nn.Parameter(torch.empty(words, size))  # E [V₀, H]
        self.bias = nn.Parameter(torch.empty(words))  # b [V₀]
        self.threshold = nn.Parameter(torch.empty(coordinates))  # θ [V], raw
        self.attention = nn.Parameter(torch.empty(size)) if self.pooling == "attention" else None
        self._low: tuple[Tensor, tuple[int, int], LowTable] | None = None
        self.register_buffer("token_ids", torch.zeros(coordinates, dtype=torch.long))
        self.register_buffer("keep", torch.ones(coordinates, dtype=torch.bool))  # False: suppressed
        self.register_buffer("spread", torch.ones(()))  # std of the lexical logits
        self.senses = (
            SenseRouter(config.expanded_words, config.senses, words, size)
            if config.expanded_words
            else None
        )

    def reset(self) -> None:
        nn.init.normal_(self.weight, std=0.02)
        nn.init.zeros_(self.bias)
        nn.init.zeros_(self.threshold)
        if self.attention is not None:
            nn.init.zeros_(self.attention)  # a plain mean at the start
        nn.init.ones_(self.keep)
        nn.init.ones_(self.spread)
        if self.senses is not None:
            self.senses.reset()

    @property
    def words(self) -> int:
        """V₀: words, each with a row of the decoder; with senses there are more coordinates."""
        return self.weight.shape[0]

    def word_of(self, coordinate: Tensor) -> Tensor:
        """The word behind each coordinate: itself, unless it is a further sense of one."""
        return coordinate if self.senses is None else self.senses.word_of(coordinate)

    def word_keep(self) -> Tensor:
        """[V₀]: false for words of which no sense can open."""
        if self.senses is None:
            return self.keep
        keep = self.keep[: self.words].clone()
        keep[self.senses.words] = self.keep[self.senses.coordinates()].any(1)
        return keep

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
        bound = self._bound(theta, reach)
        document, word, source = select_documents(
            packed.detach(),
            *(self.weight, self.bias, self._word_bound(bound), where),
            low=self._low_table(),
        )
        z = pair_logits(packed, self.weight, self.bias, source, word)
        shape = (where.batch,)
        found = self._gated(z, theta, document, word, where.position[source], shape)
        if self.senses is None:
            return found
        pairs = self._sense_pairs(self.senses, packed, theta, bound)
        best = pool_senses(pairs, where.document[pairs.source], found.dictionary_size)
        return self._with_senses(found, pairs, best, where.document, where.position)

    @in_full_precision
    def positions(
        self, h: Tensor, mask: Tensor, *, reach: float | Tensor | None = None
    ) -> OpenWords:
        """h [B, L, H], mask [B, L] → open words of shape (B, L)."""
        where = word_positions(mask)
        packed = self._packed(h, where)
        theta = nonnegative_threshold(self.threshold)
        bound = self._bound(theta, reach)
        source, word = select_positions(
            packed.detach(),
            *(self.weight, self.bias, self._word_bound(bound)),
            low=self._low_table(),
        )
        z = pair_logits(packed, self.weight, self.bias, source, word)
        above = z.detach() > bound[word]
        source, word, z = source[above], word[above], z[above]
        tokens = self._gated(
            z, theta, where.flat[source], word, where.position[source], (where.batch, where.length)
        )
        if self.senses is not None:
            pairs = self._sense_pairs(self.senses, packed, theta, bound)
            every = torch.arange(len(pairs.source), device=h.device)
            tokens = self._with_senses(tokens, pairs, every, where.flat, where.position)
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

    def _low_table(self) -> LowTable | None:
        """The screen's copy of a dictionary that does not learn, made once."""
        weight = self.weight
        if weight.requires_grad or not screens_low(weight):
            return None
        state = weight._version, weight.data_ptr()
        if self._low is None or self._low[0] is not weight or self._low[1] != state:
            self._low = weight, state, low_table(weight.detach())
        return self._low[2]

    def _bound(self, theta: Tensor, reach: float | Tensor | None) -> Tensor:
        """What a logit must exceed; suppressed words are out of reach from the start."""
        bound = theta.detach() - (self.default_reach() if reach is None else reach)
        return bound.masked_fill(~self.keep, torch.inf)

    def _word_bound(self, bound: Tensor) -> Tensor:
        """[V₀] from [V]; words with senses are looked for on their own."""
        if self.senses is None:
            return bound
        return bound[: self.words].index_fill(0, self.senses.words, torch.inf)

    def _sense_pairs(
        self, senses: SenseRouter, packed: Tensor, theta: Tensor, bound: Tensor
    ) -> SensePairs:
        """Every position and sense of the expanded words that can be open; bound [V]."""
        coordinates = senses.coordinates()  # [K, M]
        rows, biases = self.weight[senses.words].detach(), self.bias[senses.words].detach()
        source, expanded = select_positions(
            packed.detach(), rows, biases, bound[coordinates].amin(1)
        )
        z = pair_logits(packed, self.weight, self.bias, source, senses.words[expanded])  # [Q]
        coordinate = coordinates[expanded]  # [Q, M]
        value = self._gate(z[:, None].expand_as(coordinate), theta[coordinate])
        scores = senses.scores(packed, source, expanded)
        return sense_pairs(
            *(source, expanded, z, scores, value, coordinate, bound[coordinate]),
            training=self.training,
        )

    def _with_senses(
        self, found: OpenWords, pairs: SensePairs, which: Tensor, row: Tensor, position: Tensor
    ) -> OpenWords:
        """The open words and some of the pairs; row and position [N] are of packed positions."""
        source = pairs.source[which]
        other = one_source_each(
            row[source],
            pairs.coordinate[which],
            pairs.value[which],
            pairs.logit[which],
            position[source],
            shape=found.shape,
            dictionary_size=found.dictionary_size,
        )
        kept = other if self.training else other.subset(other.value > 0)
        return merged(found, kept, pairs.routes)

    def _gate(self, z: Tensor, theta: Tensor) -> Tensor:
        return apply_gate(
            z,
            theta,
            gate=self.gate,
            width=self.width,
            window=self.window,
            saturation=self.saturation,
        )

    def _gated(
        self,
        z: Tensor,
        theta: Tensor,
        row: Tensor,
        word: Tensor,
        position: Tensor,
        shape: tuple[int, ...],
    ) -> OpenWords:
        value = self._gate(z, theta[word])
        found = one_source_each(
            row, word, value, z, position, shape=shape, dictionary_size=self.keep.numel()
        )
        # without a window, candidates that the gate left closed serve nothing
        return found if self.training else found.subset(found.value > 0)
