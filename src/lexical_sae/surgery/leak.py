"""Can the concept still be told from what is left? Probes, fitted on training rows only.

A suppressed word cannot matter, but other words may say the same. How well a probe tells the
concept is the leak: 0.5 is chance, 1 is plain to see.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lexical_sae.model.open_words import OpenWords
from lexical_sae.report.finding import Estimate
from lexical_sae.surgery.fairness import AUC_DRAWS, estimate
from lexical_sae.surgery.rates import Bools, auc, bootstrap_weights

PROBES = ("linear", "mlp")
SOURCES = ("open words", "hidden state")
WIDTH, EPOCHS = 32, 30
FEWEST = 10  # rows of either kind that a probe is fitted on and measured on
MOST_ROWS = 4000  # that a probe is fitted on


@dataclass(frozen=True)
class Leak:
    """How well the concept can be told: AUC on rows that the probe has not seen."""

    source: str  # one of SOURCES
    probe: str
    auc: Estimate


def sparse_rows(words: OpenWords) -> Any:
    """[N, V] sparse: the open words' values."""
    from scipy.sparse import csr_matrix

    values = words.value.detach().double().numpy()
    shape = (words.rows, words.dictionary_size)
    return csr_matrix((values, (words.row.numpy(), words.word.numpy())), shape=shape)


def measure_leak(
    source: str,
    train: Any,
    train_concept: Bools,
    test: Any,
    test_concept: Bools,
    *,
    seed: int = 0,
) -> list[Leak]:
    """A linear and a small mlp probe. Rows are [N, D], numpy, torch or scipy's sparse."""
    train, test = _as_rows(train), _as_rows(test)
    found = []
    chosen = _some(train_concept, seed)
    for concept, rows in ((train_concept[chosen], "training"), (test_concept, "measured")):
        held = int(concept.sum())
        if min(held, len(concept) - held) < FEWEST:
            why = f"{held} of the {len(concept)} {rows} rows hold it; {FEWEST} with it and "
            why += f"{FEWEST} without are needed"
            return [Leak(source, probe, Estimate(None, why=why)) for probe in PROBES]
    weights = bootstrap_weights(len(test_concept), AUC_DRAWS, seed)
    fitted = train[chosen]
    if not isinstance(fitted, np.ndarray):  # words that open in no such row tell a probe nothing
        known = fitted.getnnz(axis=0).nonzero()[0]
        known = known if len(known) else [0]
        fitted, test = fitted[:, known], test[:, known]
    for probe in PROBES:
        model = _fit(_probe(probe, seed), fitted, train_concept[chosen])
        scores = model.predict_proba(test)[:, 1]
        found.append(Leak(source, probe, estimate(auc(scores, test_concept, weights))))
    return found


def _probe(kind: str, seed: int) -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MaxAbsScaler

    if kind == "linear":
        last: Any = LogisticRegression(max_iter=1000, class_weight="balanced")
    else:  # a fixed number of epochs: stopping by accuracy would stop at once for a rare concept
        last = MLPClassifier((WIDTH,), alpha=1e-3, max_iter=EPOCHS, tol=0.0, random_state=seed)
    return make_pipeline(MaxAbsScaler(), last)


def _fit(model: Any, rows: Any, concept: Bools) -> Any:
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():  # the number of epochs is meant
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(rows, concept)


def _as_rows(rows: Any) -> Any:
    return rows.detach().double().numpy() if isinstance(rows, Tensor) else rows


def _some(concept: Bools, seed: int) -> np.ndarray:
    """At most MOST_ROWS rows, drawn at random."""
    order = torch.randperm(len(concept), generator=torch.Generator().manual_seed(seed)).numpy()
    return np.sort(order[:MOST_ROWS])
