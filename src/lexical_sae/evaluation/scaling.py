"""Step 9: measures that Gao et al. (arXiv 2406.04093) give for sparse features, on open words.

- downstream loss: what the task loses by the sparse bottleneck, against a dense model;
- ablation sparsity: how few words the effect of removing one is spread over, (L1/L2)²;
- probe loss: how well the best single word alone tells a class from the rest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from lexical_sae.evaluation.head_problem import HeadProblem
from lexical_sae.evaluation.perturbation import Floats
from lexical_sae.model.open_words import OpenWords

NEWTON_STEPS = 25
RIDGE = 1e-3  # keeps the weight of a word that separates perfectly finite


def compute_downstream_loss(logits: Tensor, dense_logits: Tensor, labels: Tensor) -> float:
    """Mean cross-entropy of the sparse model minus that of a dense one; below 0 the sparse model is
    better. Both see the same texts."""
    if logits.shape != dense_logits.shape:
        raise ValueError(
            f"The logits have shapes {tuple(logits.shape)} and {tuple(dense_logits.shape)}; "
            "expected the same texts and classes."
        )
    sparse = F.cross_entropy(logits.double(), labels)
    return float(sparse - F.cross_entropy(dense_logits.double(), labels))


def compute_ablation_sparsity(problem: HeadProblem) -> float | None:
    """Effective number of open words: (Σ d)² / Σ d², with d the change of all logits when a word
    is removed; from 1 (one word does everything) to n (all do the same). None if none does."""
    n = problem.words
    if n == 0:
        return None
    whole = problem.logits(np.ones((1, n)))
    change = np.sqrt(((problem.logits(1.0 - np.eye(n)) - whole) ** 2).sum(1))  # [n]
    square = float((change**2).sum())
    return float(change.sum()) ** 2 / square if square > 0 else None


@dataclass(frozen=True, eq=False)
class Probes:
    """One logistic probe per word: P(class) = σ(weight · s + bias)."""

    weight: Floats  # [V]
    bias: Floats  # [V]
    loss: Floats  # [V] mean cross-entropy on the texts they were fitted on


def fit_probes(open_words: OpenWords, positive: Tensor) -> Probes:
    """All words at once by Newton's method; texts in which a word is closed share one term."""
    rows, size = open_words.rows, open_words.dictionary_size
    row, word = open_words.row, open_words.word
    s, y = open_words.value.double(), positive.double()[row]  # [P]
    count = torch.zeros(size, dtype=torch.float64).index_add(0, word, torch.ones_like(s))
    inside = torch.zeros(size, dtype=torch.float64).index_add(0, word, y)
    closed, closed_positive = rows - count, float(positive.sum()) - inside  # [V]

    def by_word(values: Tensor) -> Tensor:
        return torch.zeros(size, dtype=torch.float64).index_add(0, word, values)

    def loss(w: Tensor, b: Tensor) -> Tensor:
        z = w[word] * s + b[word]
        opened = by_word(F.softplus(z) - y * z)
        return (opened + closed * F.softplus(b) - closed_positive * b) / rows + RIDGE * w**2 / 2

    w = torch.zeros(size, dtype=torch.float64)
    share = float(positive.double().mean().clamp(1e-6, 1 - 1e-6))
    b = torch.full_like(w, float(np.log(share / (1 - share))))
    best = loss(w, b)
    for _ in range(NEWTON_STEPS):
        p, q = torch.sigmoid(w[word] * s + b[word]), torch.sigmoid(b)
        grad_w = by_word((p - y) * s) / rows + RIDGE * w
        grad_b = (by_word(p - y) + closed * q - closed_positive) / rows
        h = p * (1 - p)
        ww = by_word(h * s * s) / rows + RIDGE
        wb = by_word(h * s) / rows
        bb = (by_word(h) + closed * q * (1 - q)) / rows + 1e-9
        determinant = ww * bb - wb * wb
        step_w = (bb * grad_w - wb * grad_b) / determinant
        step_b = (ww * grad_b - wb * grad_w) / determinant
        scale = torch.ones_like(w)
        for _ in range(12):  # a step that does not lower the loss is halved
            worse = loss(w - scale * step_w, b - scale * step_b) > best + 1e-12
            if not worse.any():
                break
            scale = torch.where(worse, scale / 2, scale)
        trial_w, trial_b = w - scale * step_w, b - scale * step_b
        found = loss(trial_w, trial_b)
        better = found < best
        w, b = torch.where(better, trial_w, w), torch.where(better, trial_b, b)
        best = torch.where(better, found, best)
    plain = best - RIDGE * w**2 / 2
    return Probes(np.asarray(w.numpy()), np.asarray(b.numpy()), np.asarray(plain.numpy()))


@dataclass(frozen=True)
class BestProbe:
    """The word that alone tells a class best on the texts it was fitted on, and what it loses on
    others; `chance` is the loss of the class's frequency alone."""

    class_index: int
    coordinate: int
    loss: float
    chance: float


def probe_losses(
    train: OpenWords, train_labels: Tensor, test: OpenWords, test_labels: Tensor, classes: int
) -> list[BestProbe]:
    """Fitted and chosen on train, measured on test, for each class that both have."""
    found = []
    for index in range(classes):
        positive, truth = train_labels == index, (test_labels == index).double()
        if not positive.any() or positive.all() or not truth.any():
            continue
        probes = fit_probes(train, positive)
        best = int(probes.loss.argmin())
        s = torch.zeros(test.rows, dtype=torch.float64)
        here = test.word == best
        s[test.row[here]] = test.value[here].double()
        z = float(probes.weight[best]) * s + float(probes.bias[best])
        loss = F.binary_cross_entropy_with_logits(z, truth)
        share = float(positive.double().mean())
        odds = torch.full_like(truth, float(np.log(share / (1 - share))))
        chance = F.binary_cross_entropy_with_logits(odds, truth)
        found.append(BestProbe(index, best, float(loss), float(chance)))
    return found
