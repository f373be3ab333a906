"""The head of one decision as a small piecewise-linear function of its open words.

With x_j ∈ [0, 1] the share of open word j that is left (1: as it is, 0: removed),

    logits(x) = W2 · relu(x·G + b1) + x·D + b2,

where G[j, k] = s_j · W1[j, k]. An MLP head has D = 0, a linear head has no hidden units. All
numbers are those of the model, held in fp64.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lexical_sae.model.heads import LinearHead, MLPHead
from lexical_sae.model.state import CircuitState

Floats = NDArray[np.float64]
# Roundings beside those of the sums; also keeps the slack above the tolerance of a solver.
SPARE_STEPS = 64


@dataclass(frozen=True, eq=False)
class RowProblem:
    """n open words, K hidden units, C classes; `winner` is the decision that is asked about."""

    G: Floats  # [n, K]
    b1: Floats  # [K]
    W2: Floats  # [C, K]
    D: Floats  # [n, C]
    b2: Floats  # [C]
    coordinates: tuple[int, ...]  # [n] dictionary coordinates
    winner: int

    @property
    def words(self) -> int:
        return len(self.coordinates)

    @property
    def classes(self) -> int:
        return len(self.b2)

    def logits(self, x: Floats) -> Floats:
        """x [n] or [m, n] → [C] or [m, C]."""
        found: Floats = np.maximum(x @ self.G + self.b1, 0.0) @ self.W2.T + x @ self.D + self.b2
        return found

    @property
    def size(self) -> float:
        """More than any logit can be, for any x: what rounding is relative to."""
        hidden = np.abs(self.G).sum(0) + np.abs(self.b1)  # [K]
        size = np.abs(self.W2) @ hidden + np.abs(self.D).sum(0) + np.abs(self.b2)  # [C]
        return float(size.max()) or 1.0  # all zero: any scale will do

    @property
    def slack(self) -> float:
        """How far the logits that a model computes in single precision can be from these, for any
        x: a margin is only worth the name above it."""
        steps = self.words + len(self.b1) + SPARE_STEPS
        return steps * float(np.finfo(np.float32).eps) * self.size

    def rivals(self) -> list[int]:
        return [c for c in range(self.classes) if c != self.winner]


def row_problem(state: CircuitState, row: int) -> RowProblem:
    """The problem of one row (a text, or a flat token position) of a state."""
    open_words, head = state.open_words, state.head
    if not 0 <= row < open_words.rows:
        raise ValueError(f"row is {row}; expected 0 to {open_words.rows - 1}.")
    here = (open_words.row == row) & (open_words.value > 0)
    word = open_words.word[here]
    s = _numbers(open_words.value[here])[:, None]  # [n, 1]
    classes = head.classes
    winner = int(state.logits.detach().reshape(-1, classes)[row].argmax())
    coordinates = tuple(word.tolist())
    if isinstance(head, LinearHead):
        n = len(coordinates)
        return RowProblem(
            G=np.zeros((n, 0)),
            b1=np.zeros(0),
            W2=np.zeros((classes, 0)),
            D=s * _numbers(head.weight[word]),
            b2=_numbers(head.bias),
            coordinates=coordinates,
            winner=winner,
        )
    if isinstance(head, MLPHead):
        width = head.W1.shape[1]
        return RowProblem(
            G=s * _numbers(head.W1[word]),
            b1=np.zeros(width) if head.b1 is None else _numbers(head.b1),
            W2=_numbers(head.W2),
            D=np.zeros((len(coordinates), classes)),
            b2=_numbers(head.b2),
            coordinates=coordinates,
            winner=winner,
        )
    raise ValueError(
        "Proofs need a head that is piecewise linear, mlp or linear; the map of a bcos head moves "
        "smoothly with every word."
    )


def _numbers(tensor: object) -> Floats:
    import torch

    assert isinstance(tensor, torch.Tensor)
    return np.asarray(tensor.detach().cpu().double().numpy())
