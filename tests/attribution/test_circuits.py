"""Circuit masks and class circuits."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lexical_sae.attribution.circuits import (
    ClassAttributions,
    circuit_mask,
    class_circuits,
    collect_class_attributions,
)
from lexical_sae.attribution.contributions import compute_attribution_tensor
from lexical_sae.model.open_words import OpenWords, one_source_each
from tests.properties.cases import Case, cases
from tests.tiny import TEXTS, tiny_model


def _row_of(values: list[float]) -> OpenWords:
    """One text with as many open words as values."""
    n = len(values)
    index = torch.arange(n)
    return one_source_each(
        row=torch.zeros(n, dtype=torch.long),
        word=index,
        value=torch.ones(n),
        logit=torch.ones(n),
        position=index,
        shape=(1,),
        dictionary_size=1000,
    )


def test_a_tenth_of_ten_open_words_is_one() -> None:
    attribution = torch.tensor([0.1, -5.0, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9])
    mask = circuit_mask(attribution, _row_of([0] * 10), fraction=0.1)
    assert mask.tolist() == [0, 1, 0, 0, 0, 0, 0, 0, 0, 0]


def test_mass_takes_the_fewest_words_that_hold_it() -> None:
    attribution = torch.tensor([1.0, -6.0, 2.0, 1.0])
    assert circuit_mask(attribution, _row_of([0] * 4), mass=0.6).tolist() == [0, 1, 0, 0]
    assert circuit_mask(attribution, _row_of([0] * 4), mass=0.61).tolist() == [0, 1, 1, 0]
    assert circuit_mask(attribution, _row_of([0] * 4), mass=1.0).tolist() == [1, 1, 1, 1]


def test_top_k_takes_k_words_of_every_row() -> None:
    attribution = torch.tensor([1.0, -6.0, 2.0, 1.0])
    assert circuit_mask(attribution, _row_of([0] * 4), k=2).tolist() == [0, 1, 1, 0]
    assert circuit_mask(attribution, _row_of([0] * 4), k=9).tolist() == [1, 1, 1, 1]


def test_words_that_contribute_nothing_are_never_in() -> None:
    attribution = torch.tensor([0.0, 0.0, 3.0])
    assert circuit_mask(attribution, _row_of([0] * 3), fraction=1.0).tolist() == [0, 0, 1]


@given(cases(), st.floats(0.01, 1.0))
def test_fraction_counts_over_open_words_of_each_row(case: Case, fraction: float) -> None:
    """The trap: a fraction of the vocabulary would be more than is open, and mask nothing."""
    state = case.state()
    attribution = compute_attribution_tensor(state, row_classes=state.predicted)
    mask = circuit_mask(attribution, state.open_words, fraction=fraction)
    size = attribution.abs()
    for row in range(state.open_words.rows):
        mine = state.open_words.row == row
        n = int(mine.sum())
        nonzero = int((size[mine] > 0).sum())
        kept = int(mask[mine].sum())
        assert kept == min(math.ceil(fraction * n - 1e-9), nonzero)
        if kept and kept < nonzero:
            assert size[mine][mask[mine] == 1].min() >= size[mine][mask[mine] == 0].max()


@given(cases(), st.floats(0.05, 0.99))
def test_mass_is_held_and_not_by_one_word_less(case: Case, mass: float) -> None:
    state = case.state()
    size = compute_attribution_tensor(state, 0).abs().detach()
    mask = circuit_mask(size, state.open_words, mass=mass)
    for row in range(state.open_words.rows):
        mine = size[state.open_words.row == row]
        chosen = mine[mask[state.open_words.row == row] == 1]
        if float(mine.sum()) == 0:
            assert len(chosen) == 0
            continue
        assert float(chosen.sum()) >= (mass - 1e-9) * float(mine.sum())
        assert float(chosen.sum() - chosen.min()) < (mass + 1e-9) * float(mine.sum())


@given(cases(), st.sampled_from([{"fraction": 0.2}, {"mass": 0.7}]))
def test_the_soft_mask_rounds_to_the_hard_one(case: Case, choice: dict[str, float]) -> None:
    state = case.state()
    attribution = compute_attribution_tensor(state, 0)
    hard = circuit_mask(attribution, state.open_words, **choice)
    soft = circuit_mask(attribution, state.open_words, soft=True, temperature=1e-6, **choice)
    apart = (attribution.abs() > 1e-6) | (hard == 0)  # ties have no sharp border
    sizes = attribution.abs()
    unique = torch.tensor([(sizes == s).sum() == 1 for s in sizes], dtype=torch.bool)
    keep = apart & unique & (sizes > 0)
    torch.testing.assert_close(soft[keep].round(), hard[keep])


def test_the_soft_mask_passes_a_gradient() -> None:
    attribution = torch.tensor([0.5, -1.0, 2.0, 0.1], requires_grad=True)
    circuit_mask(attribution, _row_of([0] * 4), fraction=0.5, soft=True).sum().backward()
    gradient = attribution.grad
    assert gradient is not None
    assert gradient[1] < 0 < gradient[0]  # towards larger |A| for either sign


def test_a_text_whose_contributions_are_all_zero_has_no_circuit_and_no_nan() -> None:
    attribution = torch.zeros(3, requires_grad=True)
    mask = circuit_mask(attribution, _row_of([0] * 3), fraction=0.5, soft=True)
    assert mask.tolist() == [0, 0, 0]
    (mask * torch.tensor([5.0, -7.0, 9e9])).sum().backward()
    assert bool(torch.isfinite(attribution.grad).all())


def test_padding_counts_for_no_class() -> None:
    model = tiny_model("bert")
    encoded = model.encode(TEXTS[:2])
    ids, mask = encoded.input_ids, encoded.attention_mask
    padding = torch.zeros(2, 20, dtype=torch.long)
    short = model.tag(ids, mask)
    long = model.tag(torch.cat([ids, padding], 1), torch.cat([mask, padding], 1))
    for state in (short, long):
        found = collect_class_attributions([state])
        assert int(found.rows.sum()) == int(model.word_mask(ids, mask).sum())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, r"Give one of fraction, k and mass \(found: none\)"),
        ({"fraction": 0.1, "mass": 0.9}, r"\(found: fraction, mass\)"),
        ({"k": 0}, "k is 0; expected at least 1"),
        ({"fraction": 0.0}, "fraction is 0.0; expected a number above 0"),
        ({"mass": 1.5}, "mass is 1.5"),
        ({"fraction": 0.1, "temperature": 0.0}, "temperature is 0.0"),
    ],
)
def test_bad_choices_are_refused(arguments: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        circuit_mask(torch.ones(2), _row_of([0] * 2), **arguments)


def test_class_circuits_match_a_loop_over_texts() -> None:
    model = tiny_model("bert")
    batches = [TEXTS[0:7], TEXTS[7:12]]
    states = [model.classify(**model.encode(b).model_inputs()) for b in batches]
    found = collect_class_attributions(states)
    expected = torch.zeros_like(found.mean)
    rows = torch.zeros(3)
    for state in states:
        for row, label in enumerate(state.predicted.tolist()):
            rows[label] += 1
            mine = state.open_words.row == row
            column = compute_attribution_tensor(state, label).abs()[mine]
            expected[label, state.open_words.word[mine]] += column
    torch.testing.assert_close(found.mean, expected / rows.clamp(min=1)[:, None])
    assert found.rows.tolist() == rows.tolist()
    for circuit in class_circuits(found, fraction=0.2):
        seen = int((found.mean[circuit.class_index] > 0).sum())
        assert len(circuit.coordinates) == math.ceil(0.2 * seen - 1e-9)
        if circuit.rows == 0:
            assert circuit.coordinates == ()
            assert circuit.share == 0.0
        else:
            assert 0 < circuit.share <= 1
            assert list(circuit.mean_attribution) == sorted(circuit.mean_attribution, reverse=True)


def test_class_circuits_by_mass_and_by_label() -> None:
    mean = torch.tensor([[5.0, 3.0, 2.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    circuits = class_circuits(ClassAttributions(mean, torch.tensor([4, 0])), mass=0.75)
    assert circuits[0].coordinates == (0, 1)
    assert circuits[0].share == pytest.approx(0.8)
    assert circuits[1].coordinates == ()
    model = tiny_model("bert")
    state = model.classify(**model.encode(TEXTS[:4]).model_inputs())
    labelled = collect_class_attributions([state], labels=[torch.tensor([2, 2, -1, 2])])
    assert labelled.rows.tolist() == [0, 0, 3]
    for wrong in ([], [torch.tensor([0, 0])], [torch.tensor([9, 0, 0, 0])]):
        with pytest.raises(ValueError, match="labels does not fit"):
            collect_class_attributions([state], labels=wrong)
    with pytest.raises(ValueError, match="No batches were given"):
        collect_class_attributions([])
