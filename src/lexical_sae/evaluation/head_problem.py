"""The head of one decision as a function of how much of each open word is left, for any head.

x_j ∈ [0, 1] is the share of open word j: 1 as it is, 0 removed. Everything is held in fp64.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lexical_sae.certify.row_problem import RowProblem, row_problem
from lexical_sae.model.bcos import BcosHead
from lexical_sae.model.state import CircuitState

Floats = NDArray[np.float64]


class HeadProblem(ABC):
    """n open words, C classes; `winner` is the decision that is asked about."""

    coordinates: tuple[int, ...]
    classes: int
    winner: int

    @property
    def words(self) -> int:
        return len(self.coordinates)

    def rivals(self) -> list[int]:
        return [c for c in range(self.classes) if c != self.winner]

    @abstractmethod
    def logits(self, x: Floats) -> Floats:
        """x [n] or [m, n] → [C] or [m, C]."""

    @abstractmethod
    def torch_logits(self, x: Tensor) -> Tensor:
        """The same, with a gradient; x [m, n]."""

    @abstractmethod
    def contributions(self, against: int | None = None) -> Floats:
        """[n]: what each open word gives the decided label, or gives it more than another."""

    @abstractmethod
    def switched(self, masks: Floats) -> Floats:
        """[m]: hidden units that are on with all words and off under masks [m, n], or the other
        way round."""

    @abstractmethod
    def gradient_times_input(self) -> Floats:
        """[n]: of the decided logit."""

    @abstractmethod
    def integrated_gradients(self) -> Floats:
        """[n]: of the decided logit, from no open word to all, in closed form."""


def head_problem(state: CircuitState, row: int) -> HeadProblem:
    """The problem of one row (a text, or a flat token position) of a state."""
    if isinstance(state.head, BcosHead):
        return BcosProblem(state, row, state.head)
    return PiecewiseProblem(row_problem(state, row))


class PiecewiseProblem(HeadProblem):
    """Of an mlp or linear head: the problem that proofs are about."""

    def __init__(self, problem: RowProblem) -> None:
        self.problem = problem
        self.coordinates, self.winner = problem.coordinates, problem.winner
        self.classes = problem.classes

    def logits(self, x: Floats) -> Floats:
        return self.problem.logits(x)

    def torch_logits(self, x: Tensor) -> Tensor:
        p = self.problem
        G, b1, W2, D, b2 = (torch.from_numpy(part) for part in (p.G, p.b1, p.W2, p.D, p.b2))
        return torch.relu(x @ G + b1) @ W2.T + x @ D + b2

    def contributions(self, against: int | None = None) -> Floats:
        p = self.problem
        on = (np.ones(p.words) @ p.G + p.b1 > 0).astype(np.float64)  # [K]
        weight, direct = p.W2[p.winner], p.D[:, p.winner]
        if against is not None:
            weight, direct = weight - p.W2[against], direct - p.D[:, against]
        found: Floats = p.G @ (on * weight) + direct
        return found

    def switched(self, masks: Floats) -> Floats:
        p = self.problem
        before = np.ones(p.words) @ p.G + p.b1 > 0
        found: Floats = (before != (masks @ p.G + p.b1 > 0)).sum(1).astype(np.float64)
        return found

    def gradient_times_input(self) -> Floats:
        return self.contributions()

    def integrated_gradients(self) -> Floats:
        """Each hidden unit t·v + b switches once on the way."""
        p = self.problem
        v, b = p.G.sum(0), p.b1  # [K]
        crossing = np.clip(-b / np.where(v != 0, v, 1.0), 0.0, 1.0)
        on = np.where(v > 0, 1 - crossing, crossing)
        on = np.where(v == 0, (b > 0).astype(np.float64), on)  # [K] share of the way that it is on
        found: Floats = p.G @ (on * p.W2[p.winner]) + p.D[:, p.winner]
        return found


class BcosProblem(HeadProblem):
    """Of a B-cos head: nothing switches, and the map moves with every word."""

    def __init__(self, state: CircuitState, row: int, head: BcosHead) -> None:
        open_words = state.open_words
        here = (open_words.row == row) & (open_words.value > 0)
        word = open_words.word[here]
        self.values = open_words.value[here].detach().double()  # [n]
        self.head = head.of_words(word).double()
        self.coordinates = tuple(word.tolist())
        self.classes = head.classes
        self.winner = int(state.logits.detach().reshape(-1, head.classes)[row].argmax())

    def torch_logits(self, x: Tensor) -> Tensor:
        return self.head.dense_layers(x * self.values)[0]

    @torch.no_grad()
    def logits(self, x: Floats) -> Floats:
        found: Floats = self.torch_logits(torch.from_numpy(np.atleast_2d(x))).numpy()
        return found if x.ndim == 2 else found[0]

    @torch.no_grad()
    def contributions(self, against: int | None = None) -> Floats:
        found = self.values * self._row(self.winner)
        if against is not None:
            found = found - self.values * self._row(against)
        return np.asarray(found.numpy())

    def _row(self, label: int) -> Tensor:
        """[n]: one row of the map at all open words."""
        return self.head.dense_map(self.values)[label]

    def switched(self, masks: Floats) -> Floats:
        return np.zeros(len(masks))

    def gradient_times_input(self) -> Floats:
        x = torch.ones(1, self.words, dtype=torch.float64, requires_grad=True)
        (gradient,) = torch.autograd.grad(self.torch_logits(x)[0, self.winner], x)
        return np.asarray(gradient[0].numpy())

    def integrated_gradients(self) -> Floats:
        """The head is homogeneous: its gradient is the same all the way."""
        return self.gradient_times_input()
