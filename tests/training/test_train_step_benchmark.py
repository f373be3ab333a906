"""The benchmark of a training step compares two forms of the same mathematics."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from benchmarks.plain_objective import PlainObjective
from benchmarks.train_problem import EVERYTHING, Problem, Size, build_problem
from benchmarks.train_step import FORMS, Training, differences, make_optimizer

from lexical_sae.training.recipes import CIS

SETTINGS = EVERYTHING.model_copy(update={"target_words": 5})


@pytest.fixture(autouse=True)
def _fp64() -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


def small(classes: int) -> Problem:
    size = Size(batch=8, length=16, classes=classes, vocabulary=300, hidden=16, open_words=20)
    return build_problem(size, SETTINGS, torch.float64)


@pytest.mark.parametrize("classes", [2, 7])
def test_values_and_gradients_are_those_of_the_plain_form(classes: int) -> None:
    apart = differences(small(classes))
    assert {"ce", "completeness", "separation", "sparsity", "anchor", "content"} <= apart.keys()
    assert {"∂ lexical.weight", "∂ lexical.threshold", "∂ head.W1"} <= apart.keys()
    assert max(apart.values()) <= 1e-9, apart


@pytest.mark.parametrize("form", FORMS)
def test_every_term_has_a_gradient_here(form: str) -> None:
    """A term that is 0 throughout would be compared in vain."""
    problem = small(2)
    training = Training(problem, form, make_optimizer(problem))
    for step in problem.steps:
        seen = training.gradients(step)
    # the first batch has no centroids to be compared with, the last one has
    assert all(seen[name] > 0 for name in training.objective.terms), seen
    assert seen["phase"] == 1.0


@pytest.mark.parametrize("form", FORMS)
def test_a_step_moves_every_parameter_that_has_a_gradient(form: str) -> None:
    problem = small(2)
    before = {name: p.detach().clone() for name, p in problem.model.named_parameters()}
    training = Training(problem, form, make_optimizer(problem))
    training.step(problem.steps[0].tiny())
    training.step(problem.steps[0])
    for name, p in problem.model.named_parameters():
        assert p.grad is None or bool((p != before[name]).any()), name


def test_a_recipe_that_the_plain_form_does_not_cover_is_refused() -> None:
    problem = build_problem(
        Size(batch=2, length=8, vocabulary=60, hidden=16, open_words=5), CIS, torch.float64
    )
    with pytest.raises(ValueError, match="sharpness"):
        problem.objective(PlainObjective)
