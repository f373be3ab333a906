"""One model, trained and evaluated; taggers the same way."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lexical_sae.evaluation import explainers
from lexical_sae.studies import faithfulness
from lexical_sae.studies.experiment import OURS, TWIN
from lexical_sae.studies.registry import STUDIES
from tests.command_line import run
from tests.studies.conftest import StudyFiles, fail_twins
from tests.tagged import tagged_dataset

STEPS = ["task", "identity", "autoencoder", "calibration", "drift"]


def test_a_model_and_its_twin(files: StudyFiles, tmp_path: Path) -> None:
    file = files.write("experiment", steps=STEPS, peer_texts=2, held_out_rows=20, fitted_rows=70)
    shown, _ = run("run", file, "--output", tmp_path)
    assert "Every explanation adds up to its logit" in shown
    found = json.loads((tmp_path / "results.json").read_text())
    assert [cell["arm"] for cell in found["cells"]] == [TWIN, OURS]
    parts = found["parts"]
    assert set(parts) == {
        *("Models", "Task", "Identity", "Sparse autoencoders", "Calibration", "Meaning"),
    }
    assert parts["Task"]["metrics"]["accuracy"]["value"] == pytest.approx(
        found["cells"][1]["accuracy"]
    )
    features = parts["Sparse autoencoders"]["tables"][0]
    assert features["columns"][-1] == "accuracy, %"  # the twin was there to fit it to
    assert features["rows"][-1][-1] == pytest.approx(100 * found["cells"][1]["accuracy"])
    assert parts["Sparse autoencoders"]["notes"] == ["fitted to 70 texts of the training split"]
    assert not any("Not done" in note for note in parts["Meaning"]["notes"])
    assert "share of texts with the right label" in (tmp_path / "report.html").read_text()
    assert (tmp_path / "figures" / "calibration.svg").read_text().startswith("<svg")
    _, error = run("run", file, "--set", "steps=[tusk]", code=2)
    assert "'tusk' is not known; did you mean 'task'?" in error
    run("run", file, "--output", tmp_path, "--set", "fitted_rows=null")  # measured again, so
    again = json.loads((tmp_path / "results.json").read_text())["parts"]["Sparse autoencoders"]
    assert again["notes"] == ["fitted to 96 texts of the training split"]


@pytest.mark.parametrize("study", ["experiment", "faithfulness"])
def test_an_evaluation_without_its_twin_is_not_kept(
    files: StudyFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, study: str
) -> None:
    monkeypatch.setattr(faithfulness, "STEPS", ("task", "autoencoder"))
    own = {"steps": ["task", "autoencoder"]} if study == "experiment" else {}
    file = files.write(study, peer_texts=1, held_out_rows=20, **own)
    with monkeypatch.context() as broken:
        fail_twins(broken)
        shown, _ = run("run", file, "--output", tmp_path, code=1)
    assert "to be measured again: the dense twin of this run has not been trained" in shown
    (evaluation,) = tmp_path.rglob("evaluation.json")
    assert json.loads(evaluation.read_text())["identity"]["twin"] is None
    run("run", file, "--output", tmp_path)
    assert json.loads(evaluation.read_text())["identity"]["twin"]
    cells = json.loads((tmp_path / "results.json").read_text())["cells"]
    assert all("again" not in cell for cell in cells)
    monkeypatch.setattr(explainers, "missing", lambda: ("LIME",))
    shown, _ = run("run", file, "--output", tmp_path)  # other packages than when it was measured
    assert "finished before" not in shown


def tagged_files(folder: Path) -> tuple[Path, dict[str, object]]:
    """Sentences with tags, and how a run reads them."""
    data = folder / "data"
    data.mkdir()
    for split, rows, seed in (("train", 60, 0), ("validation", 20, 1), ("test", 20, 2)):
        found = tagged_dataset(rows, seed)
        lines = [
            json.dumps({"tokens": words, "tags": [found.label_names[tag] for tag in tags]})
            for words, tags in zip(found.tokens, found.tags, strict=True)
        ]
        (data / f"{split}.jsonl").write_text("\n".join(lines))
    columns = {"text_column": None, "label_column": None, "recipe": "tagging"}
    return data, {**columns, "tokens_column": "tokens", "tags_column": "tags"}


def test_a_tagger(files: StudyFiles, tmp_path: Path) -> None:
    data, train = tagged_files(tmp_path)
    file = files.write("ner", datasets=[str(data)], train=train, steps=["task", "identity"])
    shown, _ = run("run", file, "--output", tmp_path / "out")
    assert "Its entities have an F1 of" in shown
    found = json.loads((tmp_path / "out" / "results.json").read_text())
    assert all(0 <= cell["f1"] <= 1 for cell in found["cells"])
    assert "F1 of entities, %" in found["parts"]["Models"]["tables"][0]["columns"]


@pytest.mark.parametrize(
    ("study", "changes"),
    [("sota_comparison", {}), ("faithfulness", {"twin": False}), ("ner", {"steps": ["input"]})],
)
def test_what_a_tagger_cannot_have_is_told_before_it_is_trained(
    files: StudyFiles, tmp_path: Path, study: str, changes: dict[str, object]
) -> None:
    data, train = tagged_files(tmp_path)
    file = files.write(study, datasets=[str(data)], train=train, **changes)
    shown, _ = run("run", file, "--output", tmp_path / "out", code=1)
    assert "The step 'input' is for classifiers, not for taggers of words." in shown
    assert not list(tmp_path.rglob("metrics.json"))


@pytest.mark.parametrize(
    ("study", "train", "told"),
    [
        ("ablation", {"recipe": "cis"}, "train.recipe is given; the arms say which recipe"),
        ("multi_dataset", {"recipe": "cis"}, "train.recipe is given; expected recipes: beside"),
        ("bcos_ablation", {"model": {"head": "linear"}}, "train.model.head is given; expected he"),
        ("sparsity_frontier", {"target_words": 9}, "train.target_words is given; expected target"),
    ],
)
def test_what_the_arms_set_is_not_taken_from_train(
    study: str, train: dict[str, object], told: str
) -> None:
    config = STUDIES[study].config
    with pytest.raises(ValueError, match=told):
        config.model_validate({"datasets": ["movie_snippets"], "train": train})
    with pytest.raises(ValueError, match=told.removeprefix("train")):
        config.model_validate({"datasets": {"movie_snippets": train}})
