"""Completeness: the circuit alone decides as the whole does."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from torch import Tensor

from lexical_sae.attribution.circuits import circuit_mask
from lexical_sae.attribution.contributions import compute_attribution_tensor
from lexical_sae.model.heads import LinearHead
from lexical_sae.model.state import CircuitState
from lexical_sae.training.losses.completeness import completeness
from tests.properties.cases import Case, cases
from tests.training.pairs import sparse

OPTIONS = {"fraction": 0.3, "temperature": 0.2}


@given(cases(training=None, topk=False))
def test_both_forms_equal_the_plain_formulas(case: Case) -> None:
    state = case.state()
    rows = torch.arange(state.open_words.rows) % 3 != 1  # row 0 always counts
    a = compute_attribution_tensor(state, row_classes=state.predicted)
    labels = state.predicted.reshape(-1).roll(1)
    mask = circuit_mask(a, state.open_words, soft=True, **OPTIONS)
    masked = case.head(state.open_words.scaled(mask))
    full = state.logits.detach().reshape(masked.shape)
    kl = (full.softmax(-1) * (full.log_softmax(-1) - masked.log_softmax(-1))).sum(-1)
    ce = -masked.log_softmax(-1).gather(1, labels[:, None])[:, 0]
    unlabelled = torch.arange(len(rows)) % 4 == 2  # real rows without a label, for "ce" only
    marked = torch.where(rows & ~unlabelled, labels, -100)
    for form, plain, counted in (("kl", kl, rows), ("ce", ce, rows & ~unlabelled)):
        found = completeness(state, a, labels, form=form, **OPTIONS)
        torch.testing.assert_close(found, plain.mean())
        found = completeness(state, a, marked, form=form, rows=rows, **OPTIONS)
        torch.testing.assert_close(found, plain[counted].mean())
        grads = torch.autograd.grad(
            found, list(case.head.parameters()), allow_unused=True, retain_graph=True
        )
        assert all(torch.isfinite(g).all() for g in grads if g is not None)


def _state(value: Tensor, weight: list[list[float]]) -> CircuitState:
    """A linear head [V, C] without bias."""
    head = LinearHead(value.shape[1], len(weight[0])).double()
    with torch.no_grad():
        head.weight.copy_(torch.tensor(weight, dtype=torch.float64))
        head.bias.zero_()
    open_words = sparse(value)
    return CircuitState(head(open_words), open_words, head)


def _kl(state: CircuitState, temperature: float = 0.02) -> Tensor:
    a = compute_attribution_tensor(state, row_classes=state.predicted)
    return completeness(state, a, None, form="kl", fraction=0.1, temperature=temperature)


def test_it_is_0_when_the_circuit_holds_everything() -> None:
    value = torch.tensor([[2.0, 1.0, 1.0]], dtype=torch.float64)
    alone = _state(value, [[1.0, -1.0], [0.0, 0.0], [0.0, 0.0]])
    assert float(_kl(alone)) == pytest.approx(0, abs=1e-12)
    shared = _state(value, [[1.0, -1.0], [0.9, -0.9], [0.8, -0.8]])
    assert float(_kl(shared)) > 0.01


def test_the_mask_depends_on_the_predicted_label_only() -> None:
    value = torch.tensor([[2.0, 1.0, 0.5]], dtype=torch.float64)
    state = _state(value, [[1.0, -1.0], [0.5, 3.0], [0.8, -0.8]])
    a = compute_attribution_tensor(state, row_classes=state.predicted)
    losses = torch.stack(
        [
            completeness(state, a, torch.tensor([y]), form="ce", fraction=0.1, temperature=0.1)
            for y in (0, 1)
        ]
    )
    # one set of masked logits behind both: the probabilities of the two labels add up to 1
    assert float((-losses).exp().sum()) == pytest.approx(1)


def test_the_whole_is_the_teacher_and_gets_no_gradient() -> None:
    value = torch.tensor([[2.0, 1.0, 0.5]], dtype=torch.float64)
    state = _state(value, [[1.0, -1.0], [0.9, -0.9], [0.8, -0.8]])
    logits = state.logits.detach().requires_grad_()
    state = CircuitState(logits, state.open_words, state.head)
    a = compute_attribution_tensor(state, row_classes=state.predicted)
    term = completeness(state, a, None, form="kl", fraction=0.1, temperature=0.1)
    of_logits, of_head = torch.autograd.grad(term, (logits, state.head.weight), allow_unused=True)
    assert of_logits is None
    assert float(of_head.abs().max()) > 0


def test_rows_without_open_words_are_complete() -> None:
    value = torch.zeros(2, 3, dtype=torch.float64)
    state = _state(value, [[1.0, -1.0], [0.9, -0.9], [0.8, -0.8]])
    assert float(_kl(state)) == 0
    a = compute_attribution_tensor(state, row_classes=state.predicted)
    ce = completeness(state, a, torch.tensor([0, 1]), form="ce", **OPTIONS)
    torch.testing.assert_close(ce, F.cross_entropy(state.logits, torch.tensor([0, 1])))


def test_wrong_forms_are_refused() -> None:
    state = _state(torch.ones(1, 2, dtype=torch.float64), [[1.0, 0.0], [0.0, 1.0]])
    a = compute_attribution_tensor(state, row_classes=state.predicted)
    with pytest.raises(ValueError, match="expected 'kl' or 'ce'"):
        completeness(state, a, None, form="mse", **OPTIONS)
    with pytest.raises(ValueError, match="needs labels"):
        completeness(state, a, None, form="ce", **OPTIONS)
