"""B-cos heads: no bias, homogeneous, exact at any depth, trained and explained like the others."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from lexical_sae.attribution.contributions import compute_attribution_tensor, sum_by_row
from lexical_sae.attribution.explain import explain
from lexical_sae.attribution.integrated_gradients import integrated_gradients
from lexical_sae.certify.row_problem import row_problem
from lexical_sae.evaluation.head_problem import BcosProblem, head_problem
from lexical_sae.model.bcos import BcosHead
from lexical_sae.model.calibration import usual_length
from lexical_sae.model.compaction import compact_model
from lexical_sae.model.config import LexicalSAEConfig
from lexical_sae.model.state import CircuitState
from tests.tiny import TEXTS, tiny_model


def state_of(depth: int, **options: object) -> CircuitState:
    model = tiny_model("bert", head="bcos", head_depth=depth, **options)
    return model.classify(**model.encode(TEXTS[:5]).model_inputs())


@pytest.mark.parametrize("depth", [2, 3, 4])
def test_the_sum_is_exact_and_the_head_homogeneous(depth: int) -> None:
    state = state_of(depth)
    total = sum_by_row(compute_attribution_tensor(state), state.open_words.row, 5)
    scale = float(state.logits.abs().max())
    assert float((total - state.logits).abs().max()) <= 1e-5 * scale
    assert not state.b_eff.any()
    half = state.with_open_words(
        state.open_words.scaled(torch.full_like(state.open_words.value, 0.5))
    )
    torch.testing.assert_close(half.logits, state.logits / 2)


@pytest.mark.parametrize("depth", [2, 3])
def test_first_logits_are_neither_nothing_nor_huge(depth: int) -> None:
    """Without the layers' factors they would be about 1 / (V · width) of the input."""
    head = BcosHead(5000, 3, 64, depth)
    head.reset()
    s = torch.zeros(200, 5000)
    for row in s:
        row[torch.randperm(5000)[:40]] = torch.rand(40) + 0.5
    logits = head.dense_layers(s)[0]
    length = s.norm(dim=1, keepdim=True)
    assert 0.01 < float((logits / length).abs().mean()) < 1


def test_the_problem_of_a_row_is_the_head_itself() -> None:
    state = state_of(3)
    problem = head_problem(state, 2)
    assert isinstance(problem, BcosProblem)
    everything = np.ones(problem.words)
    assert problem.logits(everything) == pytest.approx(state.logits[2].tolist(), rel=1e-5, abs=1e-6)
    here = state.open_words.row == 2
    own = compute_attribution_tensor(state, problem.winner)[here]
    assert problem.contributions() == pytest.approx(own.tolist(), rel=1e-4, abs=1e-6)
    apart = problem.contributions(problem.rivals()[0]).sum()
    logits = problem.logits(everything)
    assert apart == pytest.approx(logits[problem.winner] - logits[problem.rivals()[0]])
    exact = integrated_gradients(state, problem.winner)[here]
    assert problem.integrated_gradients() == pytest.approx(exact.tolist(), rel=1e-4, abs=1e-6)
    assert problem.integrated_gradients().sum() == pytest.approx(logits[problem.winner])
    assert not problem.switched(1 - np.eye(problem.words)).any()
    with pytest.raises(ValueError, match="Proofs need a head that is piecewise linear"):
        row_problem(state, 0)


def test_integrated_gradients_are_captums() -> None:
    captum = pytest.importorskip("captum.attr")
    problem = head_problem(state_of(3), 1)
    x = torch.ones(1, problem.words, dtype=torch.float64)
    found = captum.IntegratedGradients(problem.torch_logits).attribute(
        x, baselines=0 * x + 1e-9, target=problem.winner, n_steps=200
    )
    assert problem.integrated_gradients() == pytest.approx(found[0].tolist(), abs=1e-5)


def test_explained_and_compacted_like_the_others() -> None:
    model = tiny_model("bert", head="bcos", head_depth=3)
    explanation = explain(model, TEXTS[0])
    total = sum(word.contribution for word in explanation.vocabulary) + explanation.bias
    assert total == pytest.approx(explanation.logit, abs=1e-5)
    assert explanation.bias == 0
    small = compact_model(model, TEXTS)
    inputs = model.encode(TEXTS).model_inputs()
    torch.testing.assert_close(small.classify(**inputs).logits, model.classify(**inputs).logits)


def test_bad_options() -> None:
    with pytest.raises(ValueError, match="a B-cos head has no biases"):
        LexicalSAEConfig(head="bcos", hidden_bias=True)
    with pytest.raises(ValueError, match="head_depth is 3, but the head is 'mlp'"):
        LexicalSAEConfig(head_depth=3)
    with pytest.raises(ValueError, match="head_depth is 1; expected a whole number of at least 2"):
        LexicalSAEConfig(head="bcos", head_depth=1)


@pytest.mark.parametrize("task", ["classification", "tagging"])
@pytest.mark.parametrize("depth", [2, 3])
def test_first_logits_are_small_however_long_s_is(task: str, depth: int) -> None:
    """Large ones made training close all words but one in its first steps."""
    model = tiny_model("bert", head="bcos", head_depth=depth, task=task)
    inputs = model.encode(TEXTS[:40]).model_inputs()
    sizes = []
    for stretch in (1.0, 30.0):
        with torch.no_grad():
            model.lexical.weight.mul_(stretch)
            model.lexical.bias.mul_(stretch)
        model.calibrate(TEXTS[:40], 8)
        assert isinstance(model.head, BcosHead)
        model.head.reset()
        model.head.start_at(usual_length(model, TEXTS[:40]))
        state = model.tag(**inputs) if task == "tagging" else model.classify(**inputs)
        sizes.append(float(state.logits[state.open_words.counts() > 0].abs().mean()))
    assert sizes[1] < 3
    assert sizes[0] == pytest.approx(sizes[1], rel=1.0)
