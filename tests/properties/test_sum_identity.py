"""Invariant 1: contributions and bias add up to the logit, for every head, pooling and task."""

from __future__ import annotations

import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from lexical_sae.attribution.contributions import compute_attribution_tensor, sum_by_row
from lexical_sae.attribution.verify import verify_sum
from lexical_sae.model.bcos import BcosHead
from lexical_sae.model.heads import Head
from lexical_sae.model.reference import plain_effective
from tests.properties.cases import Case, cases


@given(cases(dtype=torch.float32, training=None))
def test_contributions_add_up_in_fp32_and_fp64(case: Case) -> None:
    check = verify_sum(case.state())
    assert bool((check.residual <= 1e-5 * check.scale).all())
    assert bool((check.residual_fp64 <= 1e-12 * check.scale).all())
    assert check.ok


@given(cases(), st.data())
def test_chosen_classes_are_columns_of_all(case: Case, data: st.DataObject) -> None:
    state = case.state()
    everything = compute_attribution_tensor(state)
    wanted = data.draw(st.lists(st.integers(0, state.head.classes - 1), min_size=1, max_size=3))
    torch.testing.assert_close(compute_attribution_tensor(state, wanted), everything[:, wanted])
    one = compute_attribution_tensor(state, wanted[0])
    torch.testing.assert_close(one, everything[:, wanted[0]])
    predicted = compute_attribution_tensor(state, row_classes=state.predicted)
    per_pair = state.predicted.reshape(-1)[state.open_words.row]
    expected = everything.gather(1, per_pair[:, None])[:, 0]
    torch.testing.assert_close(predicted, expected)
    total = sum_by_row(everything, state.open_words.row, state.open_words.rows)
    logits = state.logits.reshape(state.open_words.rows, -1)
    torch.testing.assert_close(total + state.head.effective_bias(state.open_words), logits)


@given(cases(dtype=torch.float64), st.integers(0, 10**6))
def test_weights_of_the_decided_class_and_their_gradients_are_the_gathered_ones(
    case: Case, seed: int
) -> None:
    state = case.state()
    words, classes = state.open_words, state.predicted.reshape(-1)
    assume(len(words) > 0)
    pull = torch.randn(len(words), generator=torch.Generator().manual_seed(seed)).double()
    parameters = list(state.head.parameters())
    forms = (state.head.decided_weights, lambda *given: Head.decided_weights(state.head, *given))
    found = []
    for form in forms:
        weights = form(words, classes)
        gradients = torch.autograd.grad(
            (pull * weights).sum(), parameters, allow_unused=True, retain_graph=True
        )
        found.append((weights, *(0 if one is None else one for one in gradients)))
    for fast, plain in zip(*found, strict=True):
        torch.testing.assert_close(fast, plain)


@given(cases())
def test_dense_W_eff_is_the_written_out_product(case: Case) -> None:
    state = case.state()
    W_eff, b_eff = plain_effective(case.head, state.sparse_vector)
    torch.testing.assert_close(state.W_eff, W_eff.expand_as(state.W_eff))
    torch.testing.assert_close(state.b_eff, b_eff.expand_as(state.b_eff))
    rebuilt = torch.einsum("...cv,...v->...c", state.W_eff, state.sparse_vector) + state.b_eff
    torch.testing.assert_close(rebuilt, state.logits)


@given(cases(topk=False))
def test_attribution_is_gradient_times_input(case: Case) -> None:
    assume(not isinstance(case.head, BcosHead))  # its map moves with s
    s = case.state().sparse_vector.detach().requires_grad_()
    from lexical_sae.model.reference import plain_logits

    logits = plain_logits(case.head, s)
    (gradient,) = torch.autograd.grad(logits[..., 0].sum(), s)
    state = case.state()
    dense = torch.zeros_like(s).reshape(state.open_words.rows, -1)
    dense[state.open_words.row, state.open_words.word] = compute_attribution_tensor(state, 0)
    torch.testing.assert_close(dense.view_as(s), gradient * s)


def test_a_wrong_sum_is_noticed() -> None:
    """The check must be able to fail: logits moved by a thousandth are found."""
    from dataclasses import replace

    from tests.tiny import TEXTS, tiny_model

    model = tiny_model("bert")
    state = model.classify(**model.encode(TEXTS[:4]).model_inputs())
    assert verify_sum(state).ok
    assert not verify_sum(replace(state, logits=state.logits + 1e-3)).ok
