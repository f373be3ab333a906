"""The plainest model that explains itself: logistic regression on TF-IDF (scikit-learn)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from lexical_sae.studies.additive_text import AdditiveText, judged_texts
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


class LinearText(AdditiveText):
    """One text as a game over its features."""

    def __init__(self, model: LinearModel, row: Any) -> None:
        super().__init__(model.weights[:, row.indices] * row.data, model.bias)


def linear_baseline(
    train: TextDataset, test: TextDataset, explained: Sequence[int], seed: int = 0
) -> dict[str, Any]:
    """What it reaches; `explained` are the places of the texts whose explanations are judged."""
    model = LinearModel(train, seed)
    start = time.perf_counter()
    x = model.features(test.texts)
    said = model.predict(x)
    predicting = time.perf_counter() - start
    texts = ((place, LinearText(model, x[place])) for place in explained)
    return {
        "right": "".join("1" if a == b else "0" for a, b in zip(said, test.labels, strict=True)),
        "open_features": float(np.diff(x.indptr).mean()),
        "seconds": model.seconds,
        "predict_ms": 1000 * predicting / len(test),
        "tables": judged_texts(NAME, texts, seed),
    }
