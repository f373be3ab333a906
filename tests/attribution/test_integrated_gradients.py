"""Exact Integrated Gradients: against captum with many steps, and against the contributions."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lexical_sae.attribution.contributions import compute_attribution_tensor
from lexical_sae.attribution.integrated_gradients import (
    baseline_logits,
    integrated_gradients,
    share_of_path,
)
from tests.certify.problems import make_state


def dense_head(state, s: torch.Tensor) -> torch.Tensor:
    """s [m, V] → logits [m, C]; the plain formula."""
    head = state.head
    return torch.relu(s @ head.W1 + head.b1) @ head.W2.T + head.b2


def double(state):
    state.head.double()
    return state.with_open_words(
        type(state.open_words)(
            state.open_words.row,
            state.open_words.word,
            state.open_words.value.double(),
            state.open_words.sources,
            state.open_words.shape,
            state.open_words.dictionary_size,
        )
    )


@given(st.integers(1, 12), st.integers(1, 8), st.integers(0, 2**31))
def test_the_closed_form_equals_many_steps(words: int, width: int, seed: int) -> None:
    state = double(make_state(words, 3, width, kind="mlp", hidden_bias=True, seed=seed))
    found = integrated_gradients(state, [0, 1, 2])  # [P, 3]
    s = state.open_words.to_dense()[0].detach()
    steps = 20_000
    t = (torch.arange(steps, dtype=torch.float64) + 0.5) / steps
    on = ((t[:, None] * (s @ state.head.W1) + state.head.b1) > 0).double().mean(0)  # [width]
    plain = s[:, None] * ((state.head.W1 * on) @ state.head.W2.T)
    scale = 1 + float(plain.abs().max())
    torch.testing.assert_close(found, plain.detach(), atol=width * 2e-3 * scale, rtol=0)
    total = found.sum(0) + baseline_logits(state)
    torch.testing.assert_close(total, state.logits[0].detach(), atol=1e-10, rtol=1e-10)


def test_captum_agrees() -> None:
    captum = pytest.importorskip("captum.attr", reason="captum is in the explainers extra")
    state = double(make_state(9, 2, 6, kind="mlp", hidden_bias=True, seed=5))
    s = state.open_words.to_dense().detach()
    peer = captum.IntegratedGradients(lambda x: dense_head(state, x))
    expected = peer.attribute(s, target=1, n_steps=5000, method="riemann_middle")[0]
    torch.testing.assert_close(
        integrated_gradients(state, 1), expected.detach(), atol=5e-3, rtol=5e-3
    )


@pytest.mark.parametrize("kind", ["mlp", "linear"])
def test_without_hidden_biases_it_is_the_contributions(kind: str) -> None:
    state = make_state(8, 3, 5, kind=kind, hidden_bias=False, seed=2)
    torch.testing.assert_close(
        integrated_gradients(state, [0, 2]), compute_attribution_tensor(state, [0, 2])
    )


def test_share_of_path_by_hand() -> None:
    v = torch.tensor([[2.0, -2.0, 0.0, 0.0, 2.0, -1.0]])
    b = torch.tensor([-1.0, 1.0, 1.0, -1.0, 3.0, -1.0])
    expected = torch.tensor([[0.5, 0.5, 1.0, 0.0, 1.0, 0.0]])
    torch.testing.assert_close(share_of_path(v, b), expected)


def test_a_class_that_does_not_exist() -> None:
    state = make_state(3, 2, 2, kind="mlp", hidden_bias=True, seed=0)
    with pytest.raises(ValueError, match="expected numbers from 0 to 1"):
        integrated_gradients(state, [0, 5])
