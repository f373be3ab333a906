"""Which words are in a class's circuit is a choice, and a kept step knows it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lexical_sae.evaluation.circuit_choice import CircuitChoice, circuit_choice
from lexical_sae.evaluation.steps import STEPS
from lexical_sae.evaluation.subject import Subject
from lexical_sae.evaluation.suite import identity_of, run_suite, step_identity
from tests.evaluation.test_suite import dataset
from tests.tiny import tiny_model

CHOSEN = [step for step in STEPS if step.name in ("circuits", "completeness", "separation")]


@pytest.fixture(scope="module")
def subject() -> Subject:
    model = tiny_model("bert", head_width=16)
    return Subject(model, dataset("test", 0, 12), dataset("train", 20, 60))


def sizes(subject: Subject) -> list[int]:
    return [len(circuit.coordinates) for circuit in subject.circuits]


def test_fraction_mass_and_split_change_the_circuits(subject: Subject) -> None:
    half = replace(subject, circuit_choice=CircuitChoice(0.5))
    assert sum(sizes(half)) > sum(sizes(subject))
    mass = replace(subject, circuit_choice=CircuitChoice(None, 0.8))
    assert all(circuit.share >= 0.8 for circuit in mass.circuits if circuit.coordinates)
    other = dataset("validation", 80, 20)
    elsewhere = replace(subject, circuit_choice=CircuitChoice(0.1, data=other))
    assert elsewhere.circuit_reading.rows == 20
    assert int(elsewhere.circuit_attributions.rows.sum()) == 20
    assert "20 texts of the validation split" in CHOSEN[0].run(elsewhere).notes[0]


def test_another_choice_measures_only_its_steps_again(subject: Subject, tmp_path: Path) -> None:
    def measured(choice: CircuitChoice) -> list[str]:
        records = run_suite(replace(subject, circuit_choice=choice), tmp_path, CHOSEN)
        return [record.step.name for record in records if not record.resumed]

    assert measured(CircuitChoice()) == ["circuits", "completeness", "separation"]
    assert measured(CircuitChoice()) == []
    for choice in (
        CircuitChoice(0.2),
        CircuitChoice(None, 0.2),
        CircuitChoice(0.2, data=dataset("validation", 80, 20)),
        CircuitChoice(0.2, data=dataset("validation", 80, 21)),
    ):
        assert measured(choice) == ["circuits", "separation"]


def test_a_step_that_measures_otherwise_now_is_not_taken_from_before(subject: Subject) -> None:
    identity = identity_of(subject)
    older, newer = (step_identity(identity, replace(CHOSEN[1], form=form)) for form in (1, 2))
    assert older != newer


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ((0.1, 0.5, None), "both given; expected one"),
        ((0.0, None, None), "fraction is 0.0; expected a number above 0"),
        ((None, 1.5, None), "mass is 1.5; expected a number above 0"),
        ((None, None, "dev"), "expected one of train, validation"),
        ((None, None, "test"), "the split that is measured"),
    ],
)
def test_bad_options_get_one_sentence(options: tuple, sentence: str) -> None:
    splits = {name: dataset(name, 0, 3) for name in ("train", "validation", "test")}
    with pytest.raises(ValueError, match=sentence):
        circuit_choice(splits, "test", *options)
    assert circuit_choice(splits, "test", None, None, "train").data is None
    assert circuit_choice(splits, "train", None, 0.5, "test").data is splits["test"]


def test_one_of_fraction_and_mass() -> None:
    with pytest.raises(ValueError, match="expected one of the two"):
        CircuitChoice(0.1, 0.5)
