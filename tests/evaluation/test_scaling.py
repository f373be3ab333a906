"""Downstream loss, ablation sparsity and single-word probes against plain forms."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from lexical_sae.certify.row_problem import RowProblem
from lexical_sae.evaluation.dial import scaled_thresholds
from lexical_sae.evaluation.head_problem import PiecewiseProblem
from lexical_sae.evaluation.scaling import (
    RIDGE,
    compute_ablation_sparsity,
    compute_downstream_loss,
    fit_probes,
    probe_losses,
)
from lexical_sae.model.open_words import OpenWords, one_source_each
from tests.tiny import TEXTS, tiny_model


def words_of(dense: torch.Tensor) -> OpenWords:
    row, word = dense.nonzero(as_tuple=True)
    value = dense[row, word]
    return one_source_each(
        *(row, word, value, value, torch.zeros_like(row)),
        shape=(len(dense),),
        dictionary_size=dense.shape[1],
    )


def test_probes_are_those_of_a_plain_logistic_regression() -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    draw = torch.Generator().manual_seed(0)
    dense = torch.rand(200, 4, generator=draw) * (torch.rand(200, 4, generator=draw) < 0.4)
    label = (dense[:, 1] * 3 + torch.rand(200, generator=draw) > 0.9).long()
    found = fit_probes(words_of(dense), label == 1)
    for v in range(4):
        # sklearn's penalty is w²/2 for C = 1, on the sum and not the mean
        plain = linear_model.LogisticRegression(C=1 / (RIDGE * 200), tol=1e-10, max_iter=10_000)
        plain.fit(dense[:, v : v + 1].numpy(), label.numpy())
        assert found.weight[v] == pytest.approx(plain.coef_[0, 0], rel=1e-3, abs=1e-3)
        assert found.bias[v] == pytest.approx(plain.intercept_[0], rel=1e-3, abs=1e-3)
        z = torch.tensor(found.weight[v] * dense[:, v].double().numpy() + found.bias[v])
        loss = F.binary_cross_entropy_with_logits(z, label.double())
        assert found.loss[v] == pytest.approx(float(loss), abs=1e-9)
    best = probe_losses(words_of(dense), label, words_of(dense), label, 2)
    assert [probe.coordinate for probe in best] == [1, 1]
    assert best[0].loss < best[0].chance


def test_a_class_that_is_missing_has_no_probe() -> None:
    dense = torch.eye(4)
    labels = torch.zeros(4, dtype=torch.long)
    assert probe_losses(words_of(dense), labels, words_of(dense), labels, 3) == []


@pytest.mark.parametrize(
    ("effects", "expected"), [([1.0, 0.0, 0.0], 1.0), ([2.0, 2.0, 2.0], 3.0), ([0.0, 0.0], None)]
)
def test_ablation_sparsity_counts_the_words_that_matter(
    effects: list[float], expected: float | None
) -> None:
    n = len(effects)
    problem = RowProblem(
        G=np.zeros((n, 0)),
        b1=np.zeros(0),
        W2=np.zeros((2, 0)),
        D=np.stack([np.array(effects), np.zeros(n)], 1),
        b2=np.zeros(2),
        coordinates=tuple(range(n)),
        winner=0,
    )
    assert compute_ablation_sparsity(PiecewiseProblem(problem)) == (
        None if expected is None else pytest.approx(expected)
    )


def test_downstream_loss_is_a_difference_of_cross_entropies() -> None:
    labels = torch.tensor([0, 1])
    sure, unsure = torch.tensor([[9.0, -9.0], [-9.0, 9.0]]), torch.zeros(2, 2)
    assert compute_downstream_loss(unsure, sure, labels) == pytest.approx(np.log(2), abs=1e-6)
    assert compute_downstream_loss(sure, unsure, labels) == pytest.approx(-np.log(2), abs=1e-6)
    with pytest.raises(ValueError, match="same texts and classes"):
        compute_downstream_loss(sure, torch.zeros(3, 2), labels)


def test_the_dial_closes_words_and_is_turned_back() -> None:
    model = tiny_model("bert")
    before = model.lexical.threshold.detach().clone()
    read = model.encode(TEXTS[:4]).model_inputs()
    counts = []
    for factor in (0.5, 1.0, 2.0):
        with scaled_thresholds(model, factor):
            counts.append(int(model.classify(**read).open_words.counts().sum()))
    assert counts[0] >= counts[1] >= counts[2]
    assert counts[0] > counts[2]
    assert torch.equal(model.lexical.threshold, before)
    with pytest.raises(RuntimeError), scaled_thresholds(model, 2.0):
        raise RuntimeError
    assert torch.equal(model.lexical.threshold, before)
