"""The plainest model that explains itself: logistic regression on TF-IDF (scikit-learn)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from lexical_sae.evaluation.compared import Contest
from lexical_sae.evaluation.faithfulness import probability
from lexical_sae.evaluation.peers import random_scores
from lexical_sae.evaluation.perturbation import Floats, Masks
from lexical_sae.text.dataset import TextDataset

NAME = "weights × values"


class LinearModel:
    """logits = W x + b with x the TF-IDF of a text; a feature is removed by setting it to zero."""

    def __init__(self, train: TextDataset, seed: int = 0) -> None:
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression

        self.vectors: Any = TfidfVectorizer(sublinear_tf=True)
        self.model: Any = LogisticRegression(max_iter=1000, random_state=seed)
        start = time.perf_counter()
        self.model.fit(self.vectors.fit_transform(train.texts), train.labels)
        self.seconds = time.perf_counter() - start
        weights, bias = self.model.coef_, self.model.intercept_
        if len(weights) == 1:  # two classes: the second against the first
            weights = np.concatenate([np.zeros_like(weights), weights])
            bias = np.concatenate([np.zeros_like(bias), bias])
        self.weights, self.bias = weights, bias  # [C, F], [C] of the classes seen in training

    def features(self, texts: Sequence[str]) -> Any:
        return self.vectors.transform(texts)

    def predict(self, x: Any) -> list[int]:
        return [int(label) for label in self.model.predict(x)]


class LinearText:
    """One text as a game over its features, as `evaluation.perturbation` plays it."""

    def __init__(self, model: LinearModel, row: Any) -> None:
        self.parts: Floats = model.weights[:, row.indices] * row.data  # [C, n]
        self.bias = model.bias
        self.label = int(self._logits(np.ones((1, self.n), dtype=np.bool_))[0].argmax())

    @property
    def n(self) -> int:
        return int(self.parts.shape[1])

    def _logits(self, masks: Masks) -> Floats:
        found: Floats = masks.astype(np.float64) @ self.parts.T + self.bias
        return found

    def __call__(self, masks: Masks) -> Floats:
        return probability(self._logits(masks), self.label)

    def keeps(self, masks: Masks) -> Masks:
        return np.asarray(self._logits(masks).argmax(1) == self.label)

    def contributions(self) -> Floats:
        """[n]: what each feature gives the label more than the runner-up."""
        logits = self._logits(np.ones((1, self.n), dtype=np.bool_))[0].copy()
        logits[self.label] = -np.inf
        found: Floats = self.parts[self.label] - self.parts[int(logits.argmax())]
        return found


def linear_baseline(
    train: TextDataset, test: TextDataset, explained: Sequence[int], seed: int = 0
) -> dict[str, Any]:
    """What it reaches; `explained` are the places of the texts whose explanations are judged."""
    model = LinearModel(train, seed)
    start = time.perf_counter()
    x = model.features(test.texts)
    said = model.predict(x)
    predicting = time.perf_counter() - start
    contest = Contest(NAME)
    for place in explained:
        text = LinearText(model, x[place])
        if text.n < 2:
            continue
        draw = partial(random_scores, text.n, seed + place)
        contest.add(text, None, {NAME: text.contributions, "random": draw}, text.keeps)
    return {
        "right": "".join("1" if a == b else "0" for a, b in zip(said, test.labels, strict=True)),
        "open_features": float(np.diff(x.indptr).mean()),
        "seconds": model.seconds,
        "predict_ms": 1000 * predicting / len(test),
        "tables": [
            {"columns": table.columns, "rows": table.rows}
            for table in (contest.table(NAME), contest.removability(NAME))
        ],
    }
