"""The whole suite on a small model: every step, resumed step by step."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from lexical_sae.evaluation import explainers
from lexical_sae.evaluation.dense_states import dense_states, twin_with_labels
from lexical_sae.evaluation.explainers import AT_INPUT, OURS
from lexical_sae.evaluation.metrics import METRICS
from lexical_sae.evaluation.plausibility_step import measure_plausibility
from lexical_sae.evaluation.steps import STEPS, explainers_at_input, run_step
from lexical_sae.evaluation.subject import Subject
from lexical_sae.evaluation.suite import identity_of, run_suite
from lexical_sae.model.dense_twin import DenseTwin, DenseTwinConfig
from lexical_sae.report.evaluation_page import FIGURES, summary
from lexical_sae.text.dataset import TextDataset
from lexical_sae.text.tokenise import structural_ids
from tests.tiny import TEXTS, tiny_backbone, tiny_model, tiny_tokenizer

NAMES = ("negative", "neutral", "positive")


def dataset(split: str, start: int, rows: int) -> TextDataset:
    texts = list(TEXTS[start : start + rows])
    labels = [i % 3 for i in range(len(texts))]
    return TextDataset("tiny", split, "classification", NAMES, texts=texts, labels=labels)


def tiny_twin() -> DenseTwin:
    backbone = tiny_backbone("bert")
    config = DenseTwinConfig(
        labels=NAMES,
        max_tokens=32,
        special_token_ids=structural_ids(tiny_tokenizer("wordpiece")),
        backbone=backbone.bert.config.to_dict(),
    )
    twin = DenseTwin(config)
    twin.tokenizer = tiny_tokenizer("wordpiece")
    return twin.eval()


@pytest.fixture(scope="module")
def subject() -> Subject:
    model = tiny_model("bert", head_width=16)
    twin = tiny_twin()
    test, train = dataset("test", 0, 20), dataset("train", 20, 60)
    return Subject(model, test, train, twin, lambda: tiny_model("bert", head_width=16), 2)


def test_every_step_gives_numbers_in_their_range_and_is_resumed(
    subject: Subject, tmp_path: Path
) -> None:
    records = run_suite(subject, tmp_path)
    assert [record.step.name for record in records] == [step.name for step in STEPS]
    assert not [record for record in records if record.finding.failed or record.resumed]
    found = json.loads((tmp_path / "evaluation.json").read_text())
    assert set(found["metrics"]) <= set(METRICS)
    assert found["steps"]["identity"]["metrics"]["residual_relative"]["value"] < 1e-5
    (tmp_path / "steps" / "separation.json").unlink()
    again = run_suite(subject, tmp_path)
    # what could not be done is tried again: the data or packages for it may be there by then
    measured = [record.step.name for record in again if not record.resumed]
    assert measured == ["separation", "plausibility"]
    assert [record.finding for record in again] == [record.finding for record in records]


def test_without_a_training_split_its_steps_say_so_and_the_others_go_on(tmp_path: Path) -> None:
    alone = Subject(tiny_model("bert", head_width=16), dataset("test", 0, 8), peer_texts=1)
    records = {record.step.name: record.finding for record in run_suite(alone, tmp_path)}
    assert "no training split" in records["circuits"].notes[0]
    assert not records["circuits"].metrics
    assert records["completeness"].metrics


def test_marks_of_people_are_compared_with_every_explainer(subject: Subject) -> None:
    test = dataset("test", 0, 6)
    tokens = [text.split() for text in test.texts]
    marks = [[int(i % 2 == 0) for i in range(len(row))] for row in tokens]
    marked = replace(test, extra={"tokens": tokens, "rationale": marks})
    found = measure_plausibility(Subject(subject.model, marked, twin=subject.twin, peer_texts=5))
    rows = {row[0]: row for row in found.tables[0].rows}
    peers = ("attention", "captum Integrated Gradients", "LIME", "SHAP")
    same = f"{OURS}, on the texts of the slow"
    assert rows[same][1] == 2
    assert set(rows) == {
        OURS,
        same,
        "random",
        *peers,
        *(f"{name} of the dense twin" for name in peers),
    }
    assert rows[OURS][1] == 6
    assert rows["LIME"][1] == 2  # fewer texts for the slow ones
    assert all(0 <= float(row[2] or 0) <= 1 for row in rows.values())


def test_another_twin_is_not_taken_for_the_first(subject: Subject) -> None:
    other = tiny_twin()
    with torch.no_grad():
        other.head.bias += 1.0
    assert identity_of(subject) == identity_of(subject)
    assert identity_of(subject) != identity_of(replace(subject, twin=other))
    assert identity_of(subject) != identity_of(replace(subject, twin=None))


def test_a_model_that_opens_no_word_is_measured_all_the_same(tmp_path: Path) -> None:
    model = tiny_model("bert", head_width=16)
    with torch.no_grad():
        model.lexical.threshold.fill_(1e6)
    closed = Subject(model, dataset("test", 0, 4), dataset("train", 20, 12), peer_texts=2)
    records = {record.step.name: record.finding for record in run_suite(closed, tmp_path)}
    assert records["task"].metrics["open_words"].value == 0.0
    assert records["faithfulness"].metrics["naopc"].value is None
    assert records["input"].tables


def test_without_a_mask_token_only_what_masks_is_left_out(tmp_path: Path) -> None:
    model, twin = tiny_model("bert", head_width=16), tiny_twin()
    for one in (model, twin):
        one.tokenizer = copy.deepcopy(one.tokenizer)
        one.tokenizer.mask_token = None
    test, train = dataset("test", 0, 6), dataset("train", 20, 12)
    records = run_suite(Subject(model, test, train, twin, peer_texts=2), tmp_path)
    found = {record.step.name: record.finding for record in records}
    assert "no mask token" in found["input"].notes[0]
    assert found["explainers"].tables  # attention needs no mask
    assert any("no mask token" in note for note in found["stability"].notes)
    assert {row[0] for row in found["stability"].tables[0].rows} == {"this model"}
    assert found["drift"].metrics


def test_a_twin_that_cannot_be_masked_leaves_the_table_of_this_model(subject: Subject) -> None:
    twin = tiny_twin()
    twin.tokenizer = copy.deepcopy(twin.tokenizer)
    twin.tokenizer.mask_token = None
    found = explainers_at_input(replace(subject, twin=twin, peer_texts=1))
    assert found.tables[0].title == AT_INPUT
    assert "no mask token" in found.notes[-1]
    assert "Of the dense twin" in found.notes[-1]


def test_at_the_input_limits_are_searched_for_where_texts_are_short(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between them two models may be compared; between the orders tried they may not."""
    found = explainers_at_input(replace(subject, peer_texts=1))
    judged = [table for table in found.tables if "without" not in table.title]
    assert [table.columns[2] for table in judged] == ["NAOPC", "NAOPC"]
    assert len([note for note in found.notes if "limits that a beam search finds" in note]) == 2
    monkeypatch.setattr(explainers, "MOST_SEARCHED", 1)
    found = explainers_at_input(replace(subject, peer_texts=1))
    judged = [table for table in found.tables if "without" not in table.title]
    assert [table.columns[2] for table in judged] == ["NAOPC of the orders tried"] * 2
    assert judged[0].columns[2] in FIGURES["input"]  # so that it is drawn
    said = [note for note in found.notes if "not to be compared with another model" in note]
    assert len(said) == 2


def test_as_many_training_rows_are_fitted_on_as_are_asked_for(subject: Subject) -> None:
    texts = [TEXTS[i % len(TEXTS)] for i in range(3000)]
    train = replace(dataset("train", 0, 0), texts=texts, labels=[i % 3 for i in range(3000)])
    assert len(replace(subject, train=train).train_sample) == 2000
    assert len(replace(subject, train=train, fitted_rows=2500).train_sample) == 2500
    assert identity_of(subject) != identity_of(replace(subject, fitted_rows=2500))


def test_a_twin_with_the_same_labels_in_another_order_decides_the_same() -> None:
    twin = tiny_twin()
    with torch.no_grad():
        twin.head.weight.normal_()
        before = dense_states(twin, TEXTS[:4]) @ twin.head.weight.T + twin.head.bias
        other = twin_with_labels(twin, NAMES[::-1])
        after = dense_states(other, TEXTS[:4]) @ other.head.weight.T + other.head.bias
    assert other.config.labels == list(NAMES[::-1])
    assert torch.allclose(after.flip(1), before)
    with pytest.raises(ValueError, match="expected those of the model, a, b"):
        twin_with_labels(twin, ["a", "b"])


def test_a_twin_with_other_labels_is_not_measured_against(subject: Subject) -> None:
    twin = tiny_twin()
    twin.config.labels = ["a", "b", "c"]
    step = next(step for step in STEPS if step.name == "autoencoder")
    assert "other labels" in run_step(step, replace(subject, twin=twin)).notes[0]


def test_a_class_that_was_not_measured_is_named(subject: Subject, tmp_path: Path) -> None:
    few = replace(subject, test=dataset("test", 0, 2))  # negative, neutral
    run_suite(few, tmp_path, [STEPS[0]])
    found = json.loads((tmp_path / "evaluation.json").read_text())
    assert "None of the measured texts has the label positive" in found["notes"][0]
    assert found["notes"][0] in summary(found)
    run_suite(subject, tmp_path, [STEPS[0]])
    assert json.loads((tmp_path / "evaluation.json").read_text())["notes"] == []
