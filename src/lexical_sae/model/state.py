"""CircuitState: what a forward pass leaves behind, enough to explain every logit exactly."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from lexical_sae.model.heads import Head
from lexical_sae.model.open_words import OpenWords

# W_eff over the whole dictionary is for small cases and checks; more than this is a mistake.
DENSE_LIMIT_BYTES = 2**31


@dataclass(frozen=True, eq=False)
class CircuitState:
    """Logits, the open words they were computed from, and W_eff, b_eff on demand.

    For every row r and class c: Σ_v W_eff[r, c, v] · s[r, v] + b_eff[r, c] = logits[r, c].
    """

    logits: Tensor  # [B, C], or [B, L, C] from tag()
    open_words: OpenWords
    head: Head
    real_rows: Tensor | None = None  # [B, L] from tag(): false at padding and special tokens

    @property
    def predicted(self) -> Tensor:
        """[B] or [B, L]: the class with the largest logit."""
        return self.logits.argmax(-1)

    @property
    def positions(self) -> Tensor:
        """[P]: the token position that opened each open word."""
        return self.open_words.position

    @property
    def sparse_vector(self) -> Tensor:
        """s as a dense tensor [B, V] or [B, L, V], made on demand."""
        self._refuse_if_huge(self.open_words.rows * self.open_words.dictionary_size)
        return self.open_words.to_dense()

    def effective_weights(self, classes: Tensor | None = None) -> Tensor:
        """W_eff at the open words only: [P, C]; [P, K] for classes [K]; [P, 1] for [P, 1]."""
        open_words = self.open_words
        if classes is None:
            classes = self._all_classes()
        return self.head.effective_weights(open_words, classes, open_words.row, open_words.word)

    @property
    def W_eff(self) -> Tensor:
        """The whole effective matrix [B, C, V] or [B, L, C, V], made on demand.

        For checks on small cases; `effective_weights` gives what explanations need.
        """
        rows, size = self.open_words.rows, self.open_words.dictionary_size
        self._refuse_if_huge(rows * self.head.classes * size)
        row = torch.arange(rows, device=self.logits.device).repeat_interleave(size)
        word = torch.arange(size, device=self.logits.device).repeat(rows)
        weights = self.head.effective_weights(self.open_words, self._all_classes(), row, word)
        dense = weights.view(rows, size, self.head.classes).transpose(1, 2)
        return dense.reshape(*self.open_words.shape, self.head.classes, size)

    @property
    def b_eff(self) -> Tensor:
        """[B, C] or [B, L, C]."""
        return self.head.effective_bias(self.open_words).view_as(self.logits)

    def with_open_words(self, open_words: OpenWords) -> CircuitState:
        """The state that the head gives on other open words, for instance masked ones."""
        logits = self.head(open_words).view(*open_words.shape, self.head.classes)
        return replace(self, logits=logits, open_words=open_words)

    def at_rows(self, where: Tensor) -> CircuitState:
        """Only the decisions where the boolean `where` [B, L] (or [B]) holds: logits [R, C]."""
        return replace(
            self,
            logits=self.logits[where],
            open_words=self.open_words.at_rows(where),
            real_rows=None,
        )

    def _all_classes(self) -> Tensor:
        return torch.arange(self.head.classes, device=self.logits.device)

    def _refuse_if_huge(self, elements: int) -> None:
        size = elements * self.logits.element_size()
        if size > DENSE_LIMIT_BYTES:
            raise ValueError(
                f"This dense tensor would take {size / 2**30:.1f} GiB, more than the limit of "
                f"{DENSE_LIMIT_BYTES / 2**30:.0f} GiB; use open_words and effective_weights(), "
                "which hold open words only, or a smaller batch."
            )
