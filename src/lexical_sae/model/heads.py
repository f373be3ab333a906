"""Classifier heads: from open words to logits, with the effective weights that explain them.

Each head is piecewise linear in the open words: logits = W_eff(s) · s + b_eff(s). A head gives
its logits, its W_eff at the open words only, and its b_eff. Further heads subclass `Head` (as
`bcos` does) and are listed in `head_choice`; what they multiply runs `in_full_precision`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from lexical_sae.model.open_words import OpenWords
from lexical_sae.model.pair_logits import pair_logits
from lexical_sae.model.precision import in_full_precision
from lexical_sae.model.word_sums import sum_open_words

# Pairs per step when effective weights are formed, so that [P, width] is never held for a
# whole batch of token positions.
_PAIR_CHUNK = 65536


class Head(nn.Module, ABC):
    """What the model, the attribution and the losses ask of a head."""

    classes: int

    @in_full_precision
    def forward(self, open_words: OpenWords) -> Tensor:
        """Logits [rows, C]."""
        return self.finish(sum_open_words(open_words, self.word_table()))

    @abstractmethod
    def finish(self, total: Tensor, length: Tensor | None = None) -> Tensor:
        """Logits [rows, C] from [rows, D], the sum over words of value · word_table, and [rows],
        the length of s, which only some heads ask for."""

    @abstractmethod
    def effective_weights(
        self, open_words: OpenWords, classes: Tensor, row: Tensor, word: Tensor
    ) -> Tensor:
        """W_eff(s) of `open_words` at the pairs (row [Q], word [Q]), open or not: [Q, K] for the
        classes [K], or [Q, 1] for one class per pair if classes is [Q, 1]."""

    def decided_weights(self, open_words: OpenWords, row_classes: Tensor) -> Tensor:
        """W_eff(s) at the open words themselves, [P], for each row's own class [rows]."""
        classes = row_classes[open_words.row][:, None]
        return self.effective_weights(open_words, classes, open_words.row, open_words.word)[:, 0]

    @abstractmethod
    def effective_bias(self, open_words: OpenWords) -> Tensor:
        """b_eff [rows, C]."""

    @abstractmethod
    def word_table(self) -> nn.Parameter:
        """The one parameter with a row per dictionary word, [V, D]."""

    def select_words(self, coordinates: Tensor) -> None:
        """Keep the rows of these words only."""
        table = self.word_table()
        for name, parameter in list(self.named_parameters()):
            if parameter is table:
                rows = table.detach()[coordinates].clone()
                setattr(self, name, nn.Parameter(rows, requires_grad=table.requires_grad))

    def count_senses(self, expanded_words: Sequence[int], senses: int) -> None:
        """Told when words have got senses; only a head that looks at all words at once minds."""

    @abstractmethod
    def reset(self) -> None:
        """Draw initial weights."""


class LinearHead(Head):
    """logits = W s + b: one global scorecard; removing a word changes the logit by exactly −A."""

    def __init__(self, dictionary_size: int, classes: int) -> None:
        super().__init__()
        self.classes = classes
        self.weight = nn.Parameter(torch.empty(dictionary_size, classes))  # [V, C]
        self.bias = nn.Parameter(torch.empty(classes))

    def reset(self) -> None:
        nn.init.normal_(self.weight, std=0.02)
        nn.init.zeros_(self.bias)

    @in_full_precision
    def finish(self, total: Tensor, length: Tensor | None = None) -> Tensor:
        return total + self.bias

    def effective_weights(
        self, open_words: OpenWords, classes: Tensor, row: Tensor, word: Tensor
    ) -> Tensor:
        if classes.dim() == 2:
            return self.weight[word[:, None], classes]
        return self.weight[word][:, classes]

    def effective_bias(self, open_words: OpenWords) -> Tensor:
        return self.bias.expand(open_words.rows, -1)

    def word_table(self) -> nn.Parameter:
        return self.weight


class MLPHead(Head):
    """logits = W2 relu(W1 s [+ b1]) + b2.

    Without b1 (the default) the head is positively homogeneous up to b2: attribution, gradient ×
    input and Integrated Gradients from zero are then the same numbers.
    """

    def __init__(
        self, dictionary_size: int, classes: int, width: int, hidden_bias: bool = False
    ) -> None:
        super().__init__()
        self.classes = classes
        self.W1 = nn.Parameter(torch.empty(dictionary_size, width))  # [V, width]: rows are words
        self.b1 = nn.Parameter(torch.empty(width)) if hidden_bias else None
        self.W2 = nn.Parameter(torch.empty(classes, width))
        self.b2 = nn.Parameter(torch.empty(classes))

    def reset(self) -> None:
        nn.init.normal_(self.W1, std=0.02)
        nn.init.normal_(self.W2, std=self.W2.shape[1] ** -0.5)
        nn.init.zeros_(self.b2)
        if self.b1 is not None:
            nn.init.zeros_(self.b1)

    def hidden(self, open_words: OpenWords) -> Tensor:
        """u [rows, width], before the ReLU."""
        return self._biased(sum_open_words(open_words, self.W1))

    def _biased(self, total: Tensor) -> Tensor:
        return total if self.b1 is None else total + self.b1

    @in_full_precision
    def finish(self, total: Tensor, length: Tensor | None = None) -> Tensor:
        return torch.relu(self._biased(total)) @ self.W2.T + self.b2

    def _active(self, open_words: OpenWords) -> Tensor:
        """1[u > 0], [rows, width]; constant within a linear region, so it has no gradient."""
        with torch.no_grad():
            return (self.hidden(open_words) > 0).to(self.W1.dtype)

    @in_full_precision
    def effective_weights(
        self, open_words: OpenWords, classes: Tensor, row: Tensor, word: Tensor
    ) -> Tensor:
        active = self._active(open_words)
        parts = []
        for start in range(0, max(word.numel(), 1), _PAIR_CHUNK):
            part = slice(start, start + _PAIR_CHUNK)
            through = self.W1[word[part]] * active[row[part]]  # [q, width]
            if classes.dim() == 2:
                weights = (through * self.W2[classes[part, 0]]).sum(-1, keepdim=True)
            else:
                weights = through @ self.W2[classes].T  # [q, K]
            parts.append(weights)
        return torch.cat(parts)

    @in_full_precision
    def decided_weights(self, open_words: OpenWords, row_classes: Tensor) -> Tensor:
        """The form of the base class gathers [P, width] several times; here a row's part of the
        product is formed once, and nothing wider than [rows, width] is held."""
        through = self._active(open_words) * self.W2[row_classes]  # [rows, width]
        return pair_logits(through, self.W1, None, open_words.row, open_words.word)

    @in_full_precision
    def effective_bias(self, open_words: OpenWords) -> Tensor:
        if self.b1 is None:
            return self.b2.expand(open_words.rows, -1)
        return (self._active(open_words) * self.b1) @ self.W2.T + self.b2

    def word_table(self) -> nn.Parameter:
        return self.W1
