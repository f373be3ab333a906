"""Gradient centralisation: row means vanish, everything else stays."""

from __future__ import annotations

import torch
from torch import nn

from lexical_sae.training.centralisation import centralise_gradients
from lexical_sae.training.optimizers import parameter_groups
from lexical_sae.training.settings import Settings
from tests.tiny import TEXTS, tiny_model


def _with_gradient(*shape: int) -> nn.Parameter:
    p = nn.Parameter(torch.zeros(shape))
    p.grad = torch.randn(shape, generator=torch.Generator().manual_seed(0)) + 1
    return p


def test_rows_get_mean_zero_and_keep_their_shape() -> None:
    matrix, kernel = _with_gradient(5, 8), _with_gradient(3, 4, 2)
    assert matrix.grad is not None
    assert kernel.grad is not None
    before = matrix.grad.clone()
    centralise_gradients([matrix, kernel])
    torch.testing.assert_close(matrix.grad.mean(1), torch.zeros(5), atol=1e-6, rtol=0)
    torch.testing.assert_close(kernel.grad.mean((1, 2)), torch.zeros(3), atol=1e-6, rtol=0)
    # within a row only a constant was taken off
    torch.testing.assert_close(matrix.grad.diff(dim=1), before.diff(dim=1))


def test_vectors_and_missing_gradients_are_left_alone() -> None:
    vector, scalar, none = _with_gradient(7), _with_gradient(), nn.Parameter(torch.ones(2, 2))
    assert vector.grad is not None
    assert scalar.grad is not None
    before, before_scalar = vector.grad.clone(), scalar.grad.clone()
    centralise_gradients([vector, scalar, none])
    assert torch.equal(vector.grad, before)
    assert torch.equal(scalar.grad, before_scalar)
    assert none.grad is None


def test_words_that_the_batch_did_not_touch_stay_untouched() -> None:
    model = tiny_model("bert").train()
    encoded = model.encode(TEXTS[:2])
    model.classify(encoded.input_ids, encoded.attention_mask).logits.square().sum().backward()
    embedding = model.backbone.get_input_embeddings().weight
    groups = parameter_groups(model, Settings())
    for matrix in (model.lexical.weight, embedding):
        assert matrix.grad is not None
    untouched = [m.grad.eq(0).all(1) for m in (model.lexical.weight, embedding)]
    assert all(0 < rows.sum() < len(rows) for rows in untouched)
    head = model.head.word_table().grad.clone()
    centralise_gradients(p for g in groups if g["name"] != "head" for p in g["params"])
    for matrix, rows in zip((model.lexical.weight, embedding), untouched, strict=True):
        assert torch.equal(matrix.grad.eq(0).all(1), rows)
    assert torch.equal(model.head.word_table().grad, head)
