"""The steps that need only open words and head, on a small model and against plain forms."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from lexical_sae.attribution.circuits import class_circuits, collect_class_attributions
from lexical_sae.attribution.contributions import compute_attribution_tensor
from lexical_sae.evaluation.completeness import (
    agreement_area,
    circuit_decisions,
    cohen_kappa,
    measure_completeness,
)
from lexical_sae.evaluation.faithfulness import (
    limits_of,
    measure_faithfulness,
    remove_each,
)
from lexical_sae.evaluation.head_problem import head_problem
from lexical_sae.evaluation.identity import measure_identity
from lexical_sae.evaluation.metrics import checked
from lexical_sae.evaluation.reading import Reading, read_texts
from lexical_sae.evaluation.separation import (
    jaccards,
    measure_circuits,
    measure_separation,
)
from lexical_sae.model.lexical_sae import LexicalSAE
from lexical_sae.report.finding import Finding
from tests.tiny import TEXTS, tiny_model

SOME = TEXTS[:24]
NAMES = ("negative", "neutral", "positive")


@pytest.fixture(scope="module")
def model() -> LexicalSAE:
    return tiny_model("bert", head_width=16)


@pytest.fixture(scope="module")
def reading(model: LexicalSAE) -> Reading:
    return read_texts(model, SOME, [i % 3 for i in range(len(SOME))], batch_size=5)


def test_a_reading_in_batches_is_in_the_order_of_the_texts(
    model: LexicalSAE, reading: Reading
) -> None:
    for i, text in enumerate(SOME):
        alone = model.classify(**model.encode([text]).model_inputs())
        where = torch.arange(len(SOME)) == i
        row = reading.state.at_rows(where)
        assert torch.allclose(row.logits, alone.logits, atol=1e-6)
        assert row.open_words.word.tolist() == alone.open_words.word.tolist()
        assert row.open_words.sources.pair.tolist() == list(range(len(row.open_words.word)))
        assert row.positions.tolist() == alone.positions.tolist()
        assert torch.equal(row.open_words.sources.value, row.open_words.value)


def test_chunks_hold_every_decision_once(reading: Reading) -> None:
    parts = list(reading.chunks(7))
    assert torch.equal(torch.cat([state.logits for state, _ in parts]), reading.state.logits)
    assert torch.equal(torch.cat([labels for _, labels in parts]), reading.labels)


def test_identity_holds_and_a_broken_sum_fails(reading: Reading) -> None:
    found = measure_identity(reading)
    assert not found.failed
    assert checked(found.metrics)["residual_relative"].value < 1e-5
    rows = {row[0]: row for row in found.tables[0].rows}
    for kind, suffix, bound in (("single", "", 1e-5), ("double", "_fp64", 1e-12)):
        names = (f"residual_{part}{suffix}" for part in ("mean", "p99", "max"))
        assert rows[kind][1:4] == tuple(found.metrics[name].value for name in names)
        assert rows[kind][5] == bound
        assert 0 <= rows[kind][1] <= rows[kind][3]
        assert rows[kind][4] <= bound
    broken = replace(reading, state=replace(reading.state, logits=reading.state.logits + 0.01))
    assert "off by" in measure_identity(broken).failed


@torch.no_grad()
def test_completeness_is_that_of_the_masked_head(reading: Reading) -> None:
    found = circuit_decisions(reading, 0.2)
    for row in range(reading.rows):
        state = reading.state.at_rows(torch.arange(reading.rows) == row)
        size = compute_attribution_tensor(state, int(state.predicted)).abs()
        k = int(np.ceil(0.2 * len(size) - 1e-9))
        keep = torch.zeros(len(size), dtype=torch.bool)
        keep[size.topk(k).indices] = True
        masked = state.with_open_words(state.open_words.subset(keep))
        assert int(masked.predicted) == int(found.predicted[row])
        kl = F.kl_div(masked.logits.log_softmax(-1), state.logits.softmax(-1), reduction="sum")
        assert float(found.kl[row]) == pytest.approx(float(kl), abs=1e-5)
        assert int(found.words[row]) == k
    shown = measure_completeness(reading, NAMES)
    checked(shown.metrics)
    assert [row[0] for row in shown.tables[0].rows] == ["1 %", "5 %", "10 %", "20 %", "50 %", "all"]
    assert Finding.from_dict(shown.to_dict()) == shown
    changed = circuit_decisions(reading, 0.1).predicted != reading.state.predicted
    assert len(shown.worst) == min(5, int(changed.sum()))


def test_a_constant_predictor_does_not_score(reading: Reading) -> None:
    head = reading.state.head
    always = replace(reading.state, logits=torch.zeros_like(reading.state.logits))
    assert always.predicted.unique().numel() == 1
    assert cohen_kappa(always.predicted, always.predicted) is None
    other = torch.arange(reading.rows) % 3
    assert cohen_kappa(always.predicted, other) == pytest.approx(0.0)
    assert cohen_kappa(other, other) == 1.0
    with torch.no_grad():
        before = head.b2.clone()
        head.b2.copy_(torch.tensor([100.0, 0.0, 0.0]))
        stuck = replace(reading, state=reading.state.with_open_words(reading.state.open_words))
        found = measure_completeness(stuck, NAMES)
        head.b2.copy_(before)
    for name in ("kappa_at_10", "agreement_at_10", "agreement_area"):
        assert found.metrics[name].value is None
        assert "same label" in found.metrics[name].why
    assert "same label" in found.notes[0]
    assert not found.curves
    assert all(row[2] is None and row[3] is None for row in found.tables[0].rows)


def test_agreement_without_open_words_is_undefined(reading: Reading) -> None:
    none = reading.state.open_words.subset(torch.zeros(len(reading.state.open_words)).bool())
    found = measure_completeness(replace(reading, state=reading.state.with_open_words(none)), NAMES)
    assert found.metrics["agreement_at_10"].value is None
    assert "no word is open" in found.metrics["agreement_area"].why


def test_area_of_a_perfect_circuit_is_one() -> None:
    assert agreement_area((0.01, 0.1, 0.5), [1.0, 1.0, 1.0]) == pytest.approx(1.0)
    assert agreement_area((0.0, 1.0), [0.0, 1.0]) == pytest.approx(0.5)


def test_separation_is_undefined_without_two_circuits(model: LexicalSAE, reading: Reading) -> None:
    attributions = collect_class_attributions(state for state, _ in reading.chunks())
    circuits = class_circuits(attributions, fraction=0.1)
    shown = measure_circuits(attributions, circuits, NAMES, model.dictionary.words)
    checked(shown.metrics)
    seen = set(reading.state.predicted.tolist())
    assert [bool(circuit.coordinates) for circuit in circuits] == [c in seen for c in range(3)]
    lonely = replace(attributions, mean=attributions.mean * torch.tensor([[1.0], [0.0], [0.0]]))
    found = measure_separation(lonely, class_circuits(lonely, fraction=0.1), NAMES)
    assert found.metrics["class_cosine"].value is None
    assert "needs two" in found.metrics["class_cosine"].why


def test_separation_of_the_same_and_of_different_words() -> None:
    from lexical_sae.attribution.circuits import ClassAttributions

    mean = torch.tensor([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 2.0, 2.0], [3.0, 3.0, 0.0, 0.0]])
    both = ClassAttributions(mean, torch.tensor([5, 5, 5]))
    found = measure_separation(both, class_circuits(both, mass=1.0), NAMES)
    pairs = {(row[0], row[1]): row[2:] for row in found.tables[0].rows}
    assert pairs["negative", "positive"] == pytest.approx((1.0, 1.0))
    assert pairs["negative", "neutral"] == pytest.approx((0.0, 0.0))
    assert found.metrics["class_cosine"].value == pytest.approx(1 / 3)
    assert jaccards([{1, 2}, {2, 3}])[0, 1] == pytest.approx(1 / 3)


@torch.no_grad()
def test_faithfulness_by_hand(reading: Reading) -> None:
    problem = head_problem(reading.state, 3)
    state = reading.state.at_rows(torch.arange(reading.rows) == 3)
    plain = compute_attribution_tensor(state, int(state.predicted)).double().numpy()
    assert problem.contributions() == pytest.approx(plain, abs=1e-6)
    each = remove_each(problem)
    for j in range(problem.words):
        keep = torch.arange(problem.words) != j
        without = state.with_open_words(state.open_words.subset(keep))
        change = float(without.logits[0, problem.winner] - state.logits[0, problem.winner])
        assert each.realised[j] == pytest.approx(change, abs=1e-5)
        assert each.predicted[j] == pytest.approx(-plain[j], abs=1e-6)
    found = measure_faithfulness(reading, limits_of(reading))
    checked(found.metrics)
    assert found.metrics["naopc"].value > found.metrics["naopc_reversed"].value
    assert len(found.worst) == 5


def test_in_a_linear_head_a_removal_is_its_contribution() -> None:
    linear = tiny_model("bert", head="linear")
    read = read_texts(linear, SOME, [0] * len(SOME))
    found = measure_faithfulness(read, limits_of(read))
    assert found.metrics["removal_error"].value == pytest.approx(0.0, abs=1e-12)
    assert found.metrics["units_flipped"].value == 0
