"""Sparse autoencoders put on the dense twin afterwards, as systems that decide and explain."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lexical_sae.evaluation.autoencoder_step import KINDS, LATENTS
from lexical_sae.evaluation.dense_states import dense_states
from lexical_sae.evaluation.sparse_autoencoder import SparseAutoencoder, fit_autoencoder
from lexical_sae.model.dense_twin import DenseTwin
from lexical_sae.studies.additive_text import AdditiveText, judged_texts
from lexical_sae.text.dataset import TextDataset

NAME = "features × head"


class FeatureText(AdditiveText):
    """One text as a game over its open features. The twin's head is linear and the restored state
    is a sum over features, so the logits of the restored state are one too."""

    @torch.no_grad()
    def __init__(self, model: SparseAutoencoder, twin: DenseTwin, state: Tensor) -> None:
        features = model.features(state[None])[0]
        places = features.nonzero()[:, 0]
        weight = twin.head.weight.double()  # [C, H]
        given = (model.decoder[places] * features[places, None] * model.scale).double()  # [n, H]
        bias = twin.head(model.mean).double()
        super().__init__(np.asarray((weight @ given.T).numpy()), np.asarray(bias.numpy()))


def autoencoder_baselines(
    twin: DenseTwin,
    train: TextDataset,
    test: TextDataset,
    explained: Sequence[int],
    k: int,
    seed: int = 0,
) -> dict[str, dict[str, Any]]:
    """Both kinds, with k features open as far as they can be held there. `explained` are the places
    of the texts whose explanations are judged; seconds are without the training of the twin."""
    start = time.perf_counter()
    states = dense_states(twin, train.texts)
    reading = time.perf_counter() - start
    found = {}
    for name, kind in KINDS.items():
        start = time.perf_counter()
        latents = LATENTS * states.shape[1]
        model = fit_autoencoder(states, kind, latents=latents, k=min(k, latents), seed=seed)
        seconds = reading + time.perf_counter() - start
        found[name] = {"seconds": seconds, **_measured(model, twin, test, explained, seed)}
    return found


@torch.no_grad()
def _measured(
    model: SparseAutoencoder,
    twin: DenseTwin,
    test: TextDataset,
    explained: Sequence[int],
    seed: int,
) -> dict[str, Any]:
    start = time.perf_counter()
    states = dense_states(twin, test.texts)
    restored, features = model(states)
    said = twin.head(restored).argmax(-1)
    predicting = time.perf_counter() - start
    start = time.perf_counter()
    for state in dense_states(twin, [test.texts[place] for place in explained]):
        FeatureText(model, twin, state).contributions()
    explaining = time.perf_counter() - start
    texts = ((place, FeatureText(model, twin, states[place])) for place in explained)
    right = (said == torch.tensor(test.labels)).tolist()
    return {
        "right": "".join("1" if one else "0" for one in right),
        "agreement": float((said == twin.head(states).argmax(-1)).double().mean()),
        "open_features": float((features > 0).double().sum(1).mean()),
        "predict_ms": 1000 * predicting / max(1, len(test)),
        "explain_ms": 1000 * explaining / max(1, len(explained)),
        "tables": judged_texts(NAME, texts, seed),
    }
