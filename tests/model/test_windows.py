"""Windows as people meet them: the model's option, its files, the estimator, the commands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from lexical_sae import LexicalClassifier, LexicalSAE
from lexical_sae.attribution.explain import explain
from lexical_sae.attribution.words import explain_model_spans
from lexical_sae.evaluation.held_out import evaluate_model
from lexical_sae.evaluation.reading import read_texts
from lexical_sae.model.fingerprint import model_hash
from lexical_sae.model.windows import classify_windows
from lexical_sae.predicting import predict_texts
from lexical_sae.surgery.suppression import suppress_words
from lexical_sae.text.dataset import TextDataset
from tests.command_line import run
from tests.text.conftest import write_columns
from tests.tiny import tiny_model

LONG = "the old house was bright. " * 30 + "her music is gorgeous."
SHORT = "the film is lovely"


@pytest.fixture(scope="module")
def model() -> LexicalSAE:
    return tiny_model("bert", max_tokens=24).read_windows()


def test_all_ways_of_reading_agree(model: LexicalSAE) -> None:
    predicted = predict_texts(model, [SHORT, LONG])
    assert not predicted.truncated.any()
    reading = read_texts(model, [SHORT, LONG], [0, 1])
    labels = [model.config.labels[i] for i in reading.state.predicted.tolist()]
    assert list(predicted.labels) == labels
    why = explain(model, LONG)
    assert why.predicted == predicted.labels[1]
    assert len(why.vocabulary) <= predicted.open_words[1]
    start = LONG.index("her music")
    spans = explain_model_spans(model, LONG, spans=[(start, len(LONG))])
    total = sum(span.score for span in spans.spans) + spans.rest + spans.bias
    assert total == pytest.approx(spans.logit, abs=1e-4)
    data = TextDataset(
        *("small", "test", "classification", tuple(model.config.labels)),
        texts=[SHORT, LONG],
        labels=reading.state.predicted.tolist(),
    )
    assert evaluate_model(model, data)["accuracy"] == 1.0


def test_the_end_of_a_text_is_seen_and_memory_does_not_grow(model: LexicalSAE) -> None:
    cut = tiny_model("bert", max_tokens=24)
    assert predict_texts(cut, [LONG]).truncated.all()
    inputs = model.encode([LONG]).model_inputs()
    seen = []
    original = type(model).hidden_states

    def watched(self: LexicalSAE, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        seen.append(tuple(ids.shape))
        return original(self, ids, mask)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(model), "hidden_states", watched)
        state = classify_windows(model, **inputs, at_once=3)
    assert max(seen) <= (3, 24)
    assert len(seen) > 2
    assert int(state.positions.max()) > 24


def test_it_is_saved_and_part_of_the_identity(model: LexicalSAE, tmp_path: Path) -> None:
    model.save_pretrained(tmp_path)
    loaded = LexicalSAE.from_pretrained(tmp_path)
    assert loaded.config.windows
    assert model_hash(loaded) == model_hash(model)
    again, before = (predict_texts(one, [LONG]).probabilities[0] for one in (loaded, model))
    assert again.tolist() == before.tolist()
    assert model_hash(loaded.read_windows(False)) != model_hash(model)
    assert predict_texts(loaded, [LONG]).truncated.all()


def test_a_view_without_words_has_windows_of_its_own(model: LexicalSAE) -> None:
    view = suppress_words(model, ["film"]).view
    view.read_windows(False)
    assert model.config.windows


def test_what_is_not_exact_is_refused(model: LexicalSAE) -> None:
    with pytest.raises(
        ValueError, match="windows needs max pooling and this model has 'attention'"
    ):
        tiny_model("bert", pooling="attention").read_windows()
    with pytest.raises(ValueError, match="windows is for classifiers; a tagger reads"):
        tiny_model("bert", task="tagging").read_windows()
    inputs = model.encode([LONG]).model_inputs()
    with pytest.raises(ValueError, match=r"tokens and one window 24; .* encode with max_tokens=24"):
        model(**inputs)


def test_the_commands(tmp_path: Path) -> None:
    tiny_model("bert", max_tokens=24).save_pretrained(tmp_path / "model")
    texts = write_columns(
        tmp_path / "texts.csv", {"text": [SHORT, LONG], "label": ["positive", "negative"]}
    )
    given = ("predict", tmp_path / "model", "--input", texts, "--text-column", "text")
    shown, _ = run(*given, "--output", tmp_path / "cut.csv")
    assert "1 texts are longer than the model reads; ends not seen (--windows reads them)" in shown
    shown, _ = run(*given, "--output", tmp_path / "whole.csv", "--windows")
    assert "longer than the model reads" not in shown
    shown, _ = run("explain", tmp_path / "model", LONG, "--json")
    assert json.loads(shown)["truncated"]
    shown, _ = run("explain", tmp_path / "model", LONG, "--json", "--windows")
    found = json.loads(shown)
    assert not found["truncated"]
    assert max(word["end"] for word in found["words"]) > 200
    (tmp_path / "data").mkdir()
    rows = {"text": [SHORT, LONG] * 4, "label": ["positive", "negative"] * 4}
    for split in ("train", "validation", "test"):
        write_columns(tmp_path / "data" / f"{split}.csv", rows)
    data = ("evaluate", tmp_path / "model", "--dataset", tmp_path / "data", "--windows")
    assert "8 texts" in run(*data, "--quick")[0]
    folder = tmp_path / "out"
    steps = ("--steps", "task,identity,input,layers,stability,drift", "--peer-texts", "2")
    run(*data, *steps, "--output", folder)
    made = json.loads((folder / "evaluation.json").read_text())["steps"]
    assert not any(step["failed"] for step in made.values())
    assert any("first window" in note for note in made["input"]["notes"])
    tiny_model("bert", pooling="attention").save_pretrained(tmp_path / "attention")
    _, error = run("explain", tmp_path / "attention", SHORT, "--windows", code=2)
    assert "windows needs max pooling" in error


def test_the_estimator(model: LexicalSAE, tmp_path: Path) -> None:
    tiny_model("bert", max_tokens=24).save_pretrained(tmp_path)
    classifier = LexicalClassifier.load(tmp_path)
    cut = classifier.predict_proba([LONG])
    whole = classifier.read_windows().predict_proba([LONG])
    assert cut.tolist() != whole.tolist()
    assert not classifier.explain(LONG).truncated
    assert classifier.read_windows(False).predict_proba([LONG]).tolist() == cut.tolist()
