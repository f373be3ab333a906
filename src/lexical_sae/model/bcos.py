"""The B-cos head: no biases, no switches, and exact at any depth.

Each unit gives |cos(w, x)| · (ŵ·x), with ŵ of length 1 (Böhle et al. 2022, B = 2), so a layer is a
matrix that depends on its input, diag(|cos|)·Ŵ, and the head is the product of such matrices:
logits = W(s)·s, with nothing beside it. The map moves smoothly with s, so removing a word changes
all of it a little: less additive than a ReLU that does not switch.

A unit's cosine with a text is small, about V^-½ at the start, and its square would leave nothing to
learn from. So every layer has one positive factor, learned, that starts where its output is about
as large as its input; a factor keeps the map linear. The last one starts where the first logits
are small, however long s is (`start_at`): from large ones training flees by closing every word.

The senses of a word are open one at a time, so in the length of a unit's vector they count as one
word, by the mean of their squares: words that get senses leave every unit as long as it was.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from lexical_sae.model.heads import Head
from lexical_sae.model.open_words import OpenWords
from lexical_sae.model.precision import in_full_precision
from lexical_sae.model.word_sums import sum_open_words

_PAIR_CHUNK = 65536  # pairs whose weights are formed at once
START = 0.3  # size of the first logits, for an s of the usual length


class BcosHead(Head):
    """V → width → … → C in `depth` layers."""

    kept_factors: Tensor  # [width] 1 / length of each unit's vector before words were sliced, or 0

    def __init__(self, dictionary_size: int, classes: int, width: int, depth: int = 2) -> None:
        super().__init__()
        self.classes = classes
        self.W1 = nn.Parameter(torch.empty(dictionary_size, width))  # [V, width]: rows are words
        sizes = [width] * (depth - 2) + [classes]
        self.later = nn.ParameterList(nn.Parameter(torch.empty(size, width)) for size in sizes)
        self.log_scale = nn.Parameter(torch.empty(depth))
        self.register_buffer("kept_factors", torch.zeros(width))
        self.count_senses((), 1)

    def reset(self) -> None:
        nn.init.normal_(self.W1, std=0.02)
        for weight in self.later:
            nn.init.normal_(weight, std=weight.shape[1] ** -0.5)
        words, width = self.W1.shape
        # a unit of n inputs gives length · z² / n with z standard normal, and E[z⁴] = 3
        first = words / math.sqrt(3 * width)
        between = [math.sqrt(width / 3)] * (len(self.later) - 1)
        with torch.no_grad():
            self.log_scale.copy_(torch.tensor([first, *between, START * width]).log())
            self.kept_factors.zero_()

    @torch.no_grad()
    def start_at(self, length: float) -> None:
        """Before training: `length` is that of a usual s."""
        self.log_scale[-1] -= math.log(length)

    def count_senses(self, expanded_words: Sequence[int], senses: int) -> None:
        """Which rows of W1 are senses: those of the expanded words, and the further ones at the
        end. The model's config holds this, so it is not saved with the weights."""
        words = self.W1.shape[0]
        further = range(words - len(expanded_words) * (senses - 1), words)
        self.senses, self.sense_rows = senses, [*expanded_words, *further]

    def word_table(self) -> nn.Parameter:
        return self.W1

    def select_words(self, coordinates: Tensor) -> None:
        self.kept_factors.copy_(self._unit_factors().detach())
        super().select_words(coordinates)

    @in_full_precision
    def forward(self, open_words: OpenWords) -> Tensor:
        return self.finish(*self._sums(open_words))

    @in_full_precision
    def finish(self, total: Tensor, length: Tensor | None = None) -> Tensor:
        assert length is not None
        return self._layers(total, length)[0]

    def _sums(self, open_words: OpenWords) -> tuple[Tensor, Tensor]:
        """[rows, width] and [rows]: Σ s_v · W1[v] and the length of s."""
        return sum_open_words(open_words, self.W1), _root(open_words.squared_lengths())

    def _unit_factors(self) -> Tensor:
        """[width]: what makes each column of W1 a unit vector."""
        if bool(self.kept_factors[0] > 0):
            return self.kept_factors
        squares = self.W1.square().sum(0)
        if self.sense_rows:
            rows = torch.tensor(self.sense_rows, device=self.W1.device)
            squares = squares - (1 - 1 / self.senses) * self.W1[rows].square().sum(0)
        return squares.clamp(min=1e-30).rsqrt()

    def _layers(self, total: Tensor, length: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Logits, and each layer's scaled |cos|: [rows, units]."""
        scale = self.log_scale.exp()
        dot = total * self._unit_factors()
        factors = [scale[0] * _cosine(dot, length)]
        x = factors[0] * dot
        for layer, weight in enumerate(self.later, 1):
            dot = x @ _unit_rows(weight).T
            factors.append(scale[layer] * _cosine(dot, _root(x.square().sum(-1))))
            x = factors[-1] * dot
        return x, factors

    def dense_layers(self, s: Tensor) -> tuple[Tensor, list[Tensor]]:
        """As for open words, for s [rows, V] held densely."""
        return self._layers(s @ self.W1, _root(s.square().sum(-1)))

    def dense_map(self, s: Tensor) -> Tensor:
        """W(s) [C, V] for one s [V]."""
        factors = self.dense_layers(s[None])[1]
        found = (self.W1 * self._unit_factors() * factors[0]).T  # [width, V]
        for weight, factor in zip(self.later, factors[1:], strict=True):
            found = factor.T * (_unit_rows(weight) @ found)
        return found

    @torch.no_grad()
    def of_words(self, coordinates: Tensor) -> BcosHead:
        """A copy that knows these words only and gives the same logits on them."""
        width = self.W1.shape[1]
        small = BcosHead(len(coordinates), self.classes, width, len(self.log_scale))
        small.W1.copy_(self.W1[coordinates])
        for own, weight in zip(small.later, self.later, strict=True):
            own.copy_(weight)
        small.log_scale.copy_(self.log_scale)
        small.kept_factors.copy_(self._unit_factors())
        return small

    @in_full_precision
    def effective_weights(
        self, open_words: OpenWords, classes: Tensor, row: Tensor, word: Tensor
    ) -> Tensor:
        factors = self._layers(*self._sums(open_words))[1]
        first, units = self._unit_factors(), [_unit_rows(weight) for weight in self.later]
        parts = []
        for start in range(0, max(word.numel(), 1), _PAIR_CHUNK):
            part = slice(start, start + _PAIR_CHUNK)
            at = row[part]
            through = self.W1[word[part]] * first * factors[0][at]  # [q, width]
            for layer, weight in enumerate(units[:-1], 1):
                through = (through @ weight.T) * factors[layer][at]
            if classes.dim() == 2:
                own = classes[part, 0]
                weights = (through * units[-1][own]).sum(-1) * factors[-1][at, own]
                parts.append(weights[:, None])
            else:
                parts.append(through @ units[-1][classes].T * factors[-1][at][:, classes])
        return torch.cat(parts)

    def effective_bias(self, open_words: OpenWords) -> Tensor:
        return self.W1.new_zeros(open_words.rows, self.classes)


def _cosine(dot: Tensor, length: Tensor) -> Tensor:
    """|cos| [rows, units] from the products with unit vectors; 0 where the input is 0."""
    return dot.abs() / torch.where(length > 0, length, torch.ones_like(length))[:, None]


def _root(squares: Tensor) -> Tensor:
    """√ with gradient 0 at 0."""
    some = squares > 0
    return torch.where(some, torch.where(some, squares, torch.ones_like(squares)).sqrt(), squares)


def _unit_rows(weight: Tensor) -> Tensor:
    return weight * weight.square().sum(-1, keepdim=True).clamp(min=1e-30).rsqrt()
