"""The words of a text as a game: words that go are replaced by the backbone's mask token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lexical_sae.attribution.words import InputWord, input_words
from lexical_sae.evaluation.perturbation import Floats, Masks
from lexical_sae.evaluation.reading import NotPossible
from lexical_sae.model.mode import in_mode
from lexical_sae.text.tokenise import Encoded, encode

BATCH = 64


@dataclass(frozen=True, eq=False)
class MaskedText:
    """One text of a model (lexical or dense) and the label that it is given.

    Calling it plays the game: masks [m, n] over the text's words to the label's probability [m].
    Tokens are replaced in place, so nothing is split or joined anew.
    """

    model: Any
    ids: Tensor  # [L]
    attention: Tensor  # [L]
    words: tuple[InputWord, ...]
    mask_id: int | None  # None: the tokenizer has no mask token
    label: int

    @property
    def n(self) -> int:
        return len(self.words)

    @property
    def masked(self) -> int:
        """The token that stands for a word that is gone."""
        if self.mask_id is None:
            raise NotPossible(
                "The tokenizer has no mask token, so words cannot be masked at the input; the "
                "measures at the open words need none."
            )
        return self.mask_id

    def __call__(self, masks: Masks) -> Floats:
        return np.asarray(self._logits(masks).double().softmax(-1)[:, self.label].numpy())

    def keeps(self, masks: Masks) -> Masks:
        """[m]: whether the label still wins."""
        return np.asarray((self._logits(masks).argmax(-1) == self.label).numpy())

    @torch.no_grad()
    def _logits(self, masks: Masks) -> Tensor:
        """[m, C] with only the words of each mask left."""
        kept = torch.from_numpy(self._token_masks(masks))  # [m, L]
        ids = torch.where(kept, self.ids, torch.full_like(self.ids, self.masked))
        found = []
        with in_mode(self.model, training=False):
            for start in range(0, len(ids), BATCH):
                part = ids[start : start + BATCH]
                attention = self.attention.expand(len(part), -1)
                found.append(self.model(part, attention, task="classification").logits)
        return torch.cat(found)

    def _token_masks(self, masks: Masks) -> Masks:
        kept = np.ones((len(masks), len(self.ids)), dtype=np.bool_)
        for j, word in enumerate(self.words):
            kept[:, list(word.positions)] = masks[:, j : j + 1]
        return kept


def can_mask(model: Any) -> bool:
    return model.tokenizer.mask_token_id is not None


@torch.no_grad()
def masked_text(model: Any, text: str, max_tokens: int | None = None) -> MaskedText:
    """The game of one text and the label that the model gives it."""
    tokenizer = model.tokenizer
    limit = model.config.max_tokens if max_tokens is None else max_tokens
    unread = getattr(model.config, "unread", ())  # a dense twin reads everything
    special = model.config.special_token_ids
    encoded: Encoded = encode(tokenizer, [text], limit, special, unread=unread)
    ids, attention = encoded.input_ids[0], encoded.attention_mask[0]
    with in_mode(model, training=False):
        logits = model(ids[None], attention[None], task="classification").logits
    words = tuple(input_words(encoded, 0))
    mask_id = None if tokenizer.mask_token_id is None else int(tokenizer.mask_token_id)
    return MaskedText(model, ids, attention, words, mask_id, int(logits[0].argmax()))


def word_scores(words: Sequence[InputWord], token_scores: Floats) -> Floats:
    """[n] from scores of tokens [L]: the sum over a word's tokens."""
    return np.array([float(token_scores[list(word.positions)].sum()) for word in words])
