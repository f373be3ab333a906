"""The surgery study end to end on small data: with a planted word, and with a column of groups."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import yaml

from lexical_sae.studies.files import load_study
from lexical_sae.studies.planted import plant, plant_everywhere
from lexical_sae.studies.surgery_config import Planted, SurgeryConfig
from lexical_sae.studies.surgery_data import load_study_data
from lexical_sae.training.config import resolve_config
from tests.command_line import run
from tests.text.conftest import write_columns
from tests.training.small import save_backbone, small_dataset

PLANTED = Planted(word="garden", label="positive", share=1.0, elsewhere=0.0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    data = folder / "data"
    data.mkdir()
    save_backbone(folder / "backbone")
    for split, rows, seed in (("train", 300, 0), ("validation", 200, 1), ("test", 240, 2)):
        found = small_dataset(rows, seed)
        names = [found.label_names[label] for label in found.labels]
        where = ["cast" if "cast" in text else "other" for text in found.texts]
        write_columns(data / f"{split}.csv", {"text": found.texts, "label": names, "group": where})
    return folder


def write(folder: Path, **changes: object) -> Path:
    train = {
        "dataset": str(folder / "data"),
        "text_column": "text",
        "label_column": "label",
        "backbone": str(folder / "backbone"),
        "epochs": 3,
        "batch_size": 8,
        "target_words": 6,
        "start_words": 16,
        "learning_rate": 3e-3,
        "dictionary_rate_factor": 1,
        "anchor": None,
    }
    study = {"study": "surgery", "train": train, "positive": ["positive"], **changes}
    file = folder / f"study{len(list(folder.glob('study*.yaml')))}.yaml"
    file.write_text(yaml.safe_dump(study), encoding="utf-8")
    return file


def test_a_planted_shortcut_is_found_and_cut(folder: Path, tmp_path: Path) -> None:
    file = write(folder, planted=PLANTED.model_dump(), largest_loss=0.5)
    shown, _ = run("run", file, "--output", tmp_path / "out")
    assert "The mean FPR gap goes from" in shown
    found = json.loads((tmp_path / "out" / "results.json").read_text())
    names = [one["name"] for one in found["comparison"]]
    assert names[:5] == [
        *("baseline", "surgery", "LEACE on open words", "LEACE on hidden states"),
        "surgery and LEACE",
    ]
    before, after = found["comparison"][0], found["comparison"][1]
    assert before["words"] == 0
    assert after["words"] == len(found["words"]) > 0
    gaps = [one["bias"]["mean_fpr_gap"]["value"] for one in (before, after)]
    # whichever coordinate an untrained backbone speaks through; benchmarks.planted has a real one
    assert gaps[1] < 0.5 * gaps[0]
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Which words make the gap" in page
    assert "One word after the other" in (tmp_path / "out" / "tables.md").read_text()
    shown, _ = run("run", file, "--output", tmp_path / "out")  # what is trained is kept
    assert "is trained already" in shown
    changed = ("--set", "train.epochs=2")
    _, error = run("run", file, "--output", tmp_path / "out", *changed, code=2)
    assert "holds a run with other settings" in error
    changed = ("--set", "planted.word=house")
    _, error = run("run", file, "--output", tmp_path / "out", *changed, code=2)
    assert "holds a run on other texts" in error


def test_groups_of_a_column(folder: Path, tmp_path: Path) -> None:
    biased = {"dataset": str(folder / "data"), "choose": "validation", "column": "group"}
    words = folder / "words.yaml"
    words.write_text("groups:\n  things:\n    words: [cast]\n", encoding="utf-8")
    run("run", write(folder, biased=biased, concept=str(words)), "--output", tmp_path / "out")
    found = json.loads((tmp_path / "out" / "results.json").read_text())
    groups = found["comparison"][0]["bias"]["groups"]
    assert {group["name"] for group in groups} == {"cast", "other"}


def test_planting() -> None:
    data = small_dataset(200, 0)
    spoilt = plant(data, PLANTED, 0)
    for text, old, label in zip(spoilt.texts, data.texts, data.labels, strict=True):
        planted = len(text.split()) == len(old.split()) + 1
        assert planted == (data.label_names[label] == "positive")
    anywhere = plant_everywhere(data, PLANTED, 0)
    share = sum(mark == "garden" for mark in anywhere.extra["planted"]) / len(data)
    assert 0.35 < share < 0.65
    with pytest.raises(ValueError, match=r"planted.label is 'x'"):
        plant(data, PLANTED.model_copy(update={"label": "x"}), 0)


def test_bad_files(folder: Path, tmp_path: Path) -> None:
    for changes, message in (
        ({"planted": None}, "biased rows or a planted word; expected one"),
        (
            {"planted": {"word": "a", "label": "b", "shar": 1}},
            "unknown key 'planted.shar'; did you",
        ),
        (
            {"planted": {"word": "a", "label": "b", "share": 2}},
            "planted.share: Input should be les",
        ),
        ({"study": ["surgery"]}, "study is ['surgery']; known: surgery"),
        (
            {"biased": {"dataset": "x", "split": "a", "choose": "a", "column": "c"}},
            "choose and split are both 'a'",
        ),
        ({"study": "surgry"}, "study is 'surgry'; did you mean 'surgery'?"),
        ({"planted": PLANTED.model_dump(), "word": 3}, "unknown key 'word'; did you mean 'words'?"),
    ):
        _, error = run("run", write(folder, **changes), "--output", tmp_path / "x", code=2)
        assert message in error
        assert len(error.strip().splitlines()) == 1
    _, error = run("run", tmp_path / "no.yaml", code=2)
    assert "was not found; expected a YAML file with a study" in error
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("name", ["surgery", "surgery-planted", "hatexplain"])
def test_the_experiments_are_whole(name: str) -> None:
    assert load_study(Path("experiments") / f"{name}.yaml").study == "surgery"  # type: ignore[attr-defined]


@pytest.mark.skipif("LEXICAL_SAE_DATA" not in os.environ, reason="LEXICAL_SAE_DATA is not set")
@pytest.mark.parametrize("name", ["surgery", "hatexplain"])
def test_the_rows_of_the_experiments_fit_their_task(name: str) -> None:
    config = load_study(Path("experiments") / f"{name}.yaml", ["biased.rows=60"])
    assert isinstance(config, SurgeryConfig)
    found = load_study_data(config, resolve_config(config.train))
    assert len(found.choosing) == len(found.measured) == 60
    assert found.groups(found.measured)
    assert set(config.positive) <= set(found.measured.label_names)
