"""The logits of every word of some sentences, put together from the windows that were read."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from lexical_sae.model.decoding import allowed_transitions, best_legal_tags
from lexical_sae.text.alignment import Window

UNREAD = -1e9  # logit of every tag but O at a word that has no token


class SentenceLogits:
    """Filled window by window, in any order; then decoded sentence by sentence."""

    def __init__(self, words: Sequence[int], labels: Sequence[str]) -> None:
        """words: the number of words of every sentence."""
        self.labels = tuple(labels)
        unread = torch.zeros(len(self.labels), dtype=torch.float64)
        if "O" in self.labels:
            unread.fill_(UNREAD)[self.labels.index("O")] = 0
        self.logits = [unread.repeat(n, 1) for n in words]  # [words, C] each

    def add(self, window: Window, logits: Tensor) -> None:
        """logits [len(window.words), C]."""
        at = self.logits[window.sentence]
        at[torch.tensor(window.words, dtype=torch.long)] = logits.detach().double().cpu()

    def tags(self) -> list[list[int]]:
        """The best legal tags of every sentence."""
        follows, starts = allowed_transitions(self.labels)
        return [best_legal_tags(logits, follows, starts) for logits in self.logits]
