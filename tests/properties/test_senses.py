"""Senses keep every invariant (`cases` draws them everywhere); here is what is theirs alone."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from lexical_sae.attribution.verify import verify_sum
from lexical_sae.model.bcos import BcosHead
from lexical_sae.model.reference import plain_routes
from lexical_sae.model.senses import SenseRouter, one_chosen, straight_through
from tests.properties.cases import Case, cases


def router(case: Case) -> SenseRouter:
    assert case.layer.senses is not None
    return case.layer.senses


@given(cases(dtype=torch.float32, training=None, senses=True))
def test_contributions_add_up(case: Case) -> None:
    check = verify_sum(case.state())
    assert bool((check.residual <= 1e-5 * check.scale).all())
    assert bool((check.residual_fp64 <= 1e-12 * check.scale).all())


@given(cases(senses=True))
def test_at_a_position_a_word_has_one_sense(case: Case) -> None:
    open_words = case.layer.positions(case.h, case.mask)
    word = case.layer.word_of(open_words.word)
    key = open_words.row * case.layer.words + word
    assert len(torch.unique(key)) == len(key)
    chosen, _ = plain_routes(case.layer, case.h)
    at = chosen.flatten(0, 1)[open_words.row, open_words.word]
    assert bool(at.all())


@given(cases(dtype=torch.float32, senses=True), st.integers(0, 2**31), st.data())
def test_suppressed_senses_cannot_matter(case: Case, seed: int, data: st.DataObject) -> None:
    """Their thresholds and rows of the head; of a word without a sense left, everything."""
    coordinates = router(case).coordinates()
    some = st.sampled_from(coordinates.flatten().tolist())
    gone = data.draw(st.sets(some, min_size=1))
    case.layer.suppress(gone)
    before = case.state()
    assert not {*before.open_words.word.tolist()} & gone
    index = torch.tensor(sorted(gone))
    draw = torch.Generator().manual_seed(seed)
    dead = (~case.layer.keep[coordinates]).all(1)
    rows = dead.repeat_interleave(router(case).senses).nonzero()[:, 0]
    words = (~case.layer.word_keep()).nonzero()[:, 0]
    tables = [
        (case.layer.threshold, index),
        *((router(case).weight, rows), (router(case).bias, rows)),
        *((case.layer.weight, words), (case.layer.bias, words)),
    ]
    if not isinstance(case.head, BcosHead):  # a row there is part of every unit's length
        tables.append((case.head.word_table(), index))
    with torch.no_grad():
        for table, which in tables:
            table[which] = 100 * torch.randn(len(which), *table.shape[1:], generator=draw)
    after = case.state()
    assert torch.equal(before.logits, after.logits)
    assert torch.equal(before.open_words.value, after.open_words.value)


@given(cases(dtype=torch.float32, senses=True), st.data())
def test_suppressing_a_sense_opens_no_other(case: Case, data: st.DataObject) -> None:
    case.layer.keep.fill_(True)
    case.layer.topk = 0  # a place that becomes free is taken by the next word
    before = case.state().sparse_vector
    one = data.draw(st.sampled_from(router(case).coordinates().flatten().tolist()))
    case.layer.suppress([one])
    before[..., one] = 0
    assert torch.equal(case.state().sparse_vector, before)


scores = st.integers(0, 2**31).map(
    lambda seed: torch.randn(5, 3, 2, generator=torch.Generator().manual_seed(seed)).double()
)


@given(scores)
def test_the_choice_is_hard_forward_and_soft_backward(drawn: torch.Tensor) -> None:
    value = drawn[..., 0].abs().requires_grad_()
    score = drawn[..., 1].clone().requires_grad_()
    weight = torch.linspace(-1, 2, 15).view(5, 3).double()
    out = straight_through(value, score)
    assert torch.equal(out, value.detach() * one_chosen(score))
    into_value, into_score = torch.autograd.grad((out * weight).sum(), [value, score])
    torch.testing.assert_close(into_value, weight * one_chosen(score))
    soft = (value.detach() * torch.softmax(score, -1) * weight).sum()
    (expected,) = torch.autograd.grad(soft, score)
    torch.testing.assert_close(into_score, expected)


@given(scores)
def test_the_soft_part_has_the_gradient_of_its_values(drawn: torch.Tensor) -> None:
    """gradcheck sees forward values, so it is given the soft ones."""
    value, score = drawn[..., 0].abs(), drawn[..., 1].clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda s: value * torch.softmax(s, -1), (score,))


@given(cases(training=True, senses=True))
def test_routes_are_those_of_open_words(case: Case) -> None:
    routes = case.state().open_words.routes
    assert routes is not None
    torch.testing.assert_close(routes.soft.sum(1), torch.ones(len(routes.soft)).double())
    positions = case.layer.positions(case.h, case.mask)
    further = torch.isin(positions.word, router(case).coordinates())
    assert len(routes.word) == int((further & (positions.value > 0)).sum())
