"""The suite on a tagger: every word is a decision, entities are counted strictly."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from lexical_sae.attribution.contributions import compute_attribution_tensor, sum_by_row
from lexical_sae.evaluation.bootstrap import ratio_estimate
from lexical_sae.evaluation.held_out import evaluate_model
from lexical_sae.evaluation.layers import layer_parts
from lexical_sae.evaluation.steps import chosen_steps
from lexical_sae.evaluation.subject import Subject
from lexical_sae.evaluation.suite import run_suite
from lexical_sae.evaluation.tag_reading import read_tagged, shown_word
from lexical_sae.evaluation.task_step import measure_task
from lexical_sae.model.tagging import padded
from lexical_sae.text.alignment import sentence_windows
from tests.tagged import tagged_dataset, tiny_tagger


@pytest.fixture(scope="module")
def subject() -> Subject:
    test, train = tagged_dataset(20, 1), tagged_dataset(40, 0)
    return Subject(tiny_tagger(), test, train, untrained=tiny_tagger, peer_texts=2)


def test_a_reading_has_every_word_with_its_tag(subject: Subject) -> None:
    data = subject.test
    found = read_tagged(subject.model, data.tokens, data.tags, batch_size=3)
    assert found.rows == sum(map(len, data.tokens))
    for row in range(found.rows):
        words, tags = data.tokens[found.sentence[row]], data.tags[found.sentence[row]]
        word = next(w for w in range(len(words)) if shown_word(words, w) == found.names[row])
        assert int(found.labels[row]) == tags[word]
    attribution = compute_attribution_tensor(found.state, row_classes=found.state.predicted)
    total = sum_by_row(attribution, found.state.open_words.row, found.rows)
    bias = found.state.b_eff.gather(1, found.state.predicted[:, None])[:, 0]
    logit = found.state.logits.gather(1, found.state.predicted[:, None])[:, 0]
    assert torch.allclose(total + bias, logit, atol=1e-4)


def test_entities_are_those_of_the_plain_evaluation(subject: Subject) -> None:
    shown, plain = measure_task(subject), evaluate_model(subject.model, subject.test)
    for name in ("f1", "precision", "recall"):
        assert (shown.metrics[f"entity_{name}"].value or 0.0) == pytest.approx(plain[name])
    assert shown.metrics["token_accuracy"].value == pytest.approx(plain["accuracy"])
    assert shown.metrics["open_words"].value == pytest.approx(plain["open_words"])


def test_the_steps_of_a_tagger(subject: Subject, tmp_path: Path) -> None:
    steps = chosen_steps(None, "tagging")
    records = {record.step.name: record.finding for record in run_suite(subject, tmp_path, steps)}
    assert not [name for name, finding in records.items() if finding.failed]
    not_done = [n for n, f in records.items() if any(note.startswith("Not ") for note in f.notes)]
    assert not not_done
    assert records["stability"].metrics["same_explanation"].value == 1.0
    assert records["drift"].metrics["untrained_share"].value == pytest.approx(1.0)
    assert "attention" not in [row[0] for row in records["explainers"].tables[0].rows]
    found = json.loads((tmp_path / "evaluation.json").read_text())
    assert "input" not in found["steps"]
    assert "words that get another tag than O" in found["steps"]["layers"]["notes"][0]
    assert all("«" in case["text"] for case in found["steps"]["faithfulness"]["worst"])


def test_a_step_of_classifiers_is_refused() -> None:
    with pytest.raises(ValueError, match="'autoencoder' is for classifiers"):
        chosen_steps("task,autoencoder", "tagging")


def test_the_layers_of_every_word_add_up(subject: Subject) -> None:
    model = subject.model
    assert model.tokenizer is not None
    limits = (model.config.max_tokens, model.config.special_token_ids)
    windows = sentence_windows(model.tokenizer, subject.test.tokens[:4], *limits)
    found = layer_parts(model, *padded(model, windows))
    assert len(found.parts) == sum(map(len, subject.test.tokens[:4]))
    scale = 1 + float(found.parts.abs().max())
    assert float(found.residual.max()) < 1e-5 * scale
    some = found.some(found.decided == found.decided[0])
    assert torch.equal(some.parts[0], found.parts[0])
    assert len(some.kept) == int((found.decided == found.decided[0]).sum())


def test_a_ratio_is_that_of_the_sums() -> None:
    found = ratio_estimate(np.array([1.0, 0.0, 2.0]), np.array([2.0, 1.0, 2.0]))
    assert found.value == pytest.approx(0.6)
    assert found.low is not None
    assert found.high is not None
    assert 0.0 <= found.low <= 0.6 <= found.high <= 1.0
    assert ratio_estimate(np.zeros(2), np.zeros(2)).value is None
