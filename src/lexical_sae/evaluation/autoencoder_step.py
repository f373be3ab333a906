"""Sparse autoencoders on the dense twin, beside the open words of this model."""

from __future__ import annotations

import torch

from lexical_sae.evaluation.dense_states import dense_states
from lexical_sae.evaluation.reading import NotPossible
from lexical_sae.evaluation.scaling import compute_downstream_loss
from lexical_sae.evaluation.sparse_autoencoder import (
    Kind,
    autoencoder_quality,
    fit_autoencoder,
)
from lexical_sae.evaluation.subject import Subject
from lexical_sae.report.finding import Cell, Estimate, Finding, FindingTable

TITLE = "Features put in afterwards, and built in"
LATENTS = 4  # times the width of the state
KINDS: dict[str, Kind] = {"TopK": "topk", "JumpReLU": "jumprelu"}


def measure_autoencoders(subject: Subject) -> Finding:
    """Fitted to the twin's pooled states of training texts, with as many features open as this
    model opens words; measured on the evaluated texts."""
    twin = subject.twin
    if twin is None:
        raise NotPossible(
            "There is no dense twin to fit a sparse autoencoder to; train one with lexical-sae "
            "train --dense-twin and give its run with --against."
        )
    if list(twin.config.labels) != list(subject.model.config.labels):
        raise NotPossible(
            "The dense twin has other labels than the model, or in another order, so their logits "
            "cannot be compared."
        )
    reading = subject.reading
    train = dense_states(twin, subject.train_sample.texts)
    test = dense_states(twin, subject.test.texts)
    labels, counts = reading.labels, reading.state.open_words.counts().double()
    k = max(1, round(float(counts.mean())))
    rows: list[tuple[Cell, ...]] = []
    for name, kind in KINDS.items():
        with torch.enable_grad():
            model = fit_autoencoder(
                train, kind, latents=LATENTS * train.shape[1], k=k, seed=subject.seed
            )
        found = autoencoder_quality(model, twin.head, train, test, labels)
        rows.append(
            (
                *(f"{name} on the twin", found.open_features, 100 * found.unexplained),
                *(100 * found.dead, found.loss - found.loss_before, 100 * found.agreement),
                100 * found.accuracy,
            )
        )
    right = float((reading.state.predicted == labels).double().mean())
    own = ("this model's open words", float(counts.mean()), 0.0, None, 0.0, 100.0, 100 * right)
    rows.append(own)
    loss = compute_downstream_loss(reading.state.logits, twin.head(test), labels)
    columns = (
        *("features", "open per text", "not restored, %", "never open, %"),
        *("cross-entropy added", "decisions kept, %", "accuracy, %"),
    )
    return Finding(
        metrics={"downstream_loss": Estimate(loss)},
        tables=(FindingTable(TITLE, columns, tuple(rows)),),
        notes=(f"fitted to {len(train):,} texts of the training split",),
    )
