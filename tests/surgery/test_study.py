"""The surgery study end to end on small data: with a planted word, and with a column of groups."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
import yaml

from lexical_sae.report.finding import Estimate
from lexical_sae.studies.files import fallback_of, load_study
from lexical_sae.studies.planted import plant, plant_everywhere
from lexical_sae.studies.surgery_config import Planted, SurgeryConfig
from lexical_sae.studies.surgery_data import load_study_data
from lexical_sae.studies.surgery_findings import Point, pareto
from lexical_sae.studies.surgery_summary import bounded
from lexical_sae.surgery.leak import PROBES, SOURCES
from lexical_sae.training.config import resolve_config
from tests.command_line import run
from tests.text.conftest import write_columns
from tests.training.small import BAD, GOOD, save_backbone, small_dataset

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
        tokens = [text.split() for text in found.texts]
        marks = [[int(token in (*GOOD, *BAD)) for token in row] for row in tokens]
        columns = {"text": found.texts, "label": names, "group": where}
        columns |= {"tokens": tokens, "rationale": marks}
        write_columns(data / f"{split}.parquet", columns)
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
    assert (found["schema"], found["study"], found["seeds"]) == (1, "surgery", [0])
    assert list(found["parts"]) == ["Which words make the gap", "The smallest cut", "Treatments"]
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
    assert after["gap_fall"]["value"] == pytest.approx(1 - gaps[1] / gaps[0])
    assert {(leak["source"], leak["probe"]) for leak in after["leaks"]} == {
        (source, probe) for source in SOURCES for probe in PROBES
    }
    assert after["leaks"][2:] == before["leaks"][2:]  # hidden states stand before the cut
    duels = found["at_equal_accuracy"]
    assert [duel["other"] for duel in duels] == ["LEACE on open words", "LEACE on hidden states"]
    accuracies = [1.0, *(step["accuracy"] for step in found["path"])]
    for duel in duels:
        ours, theirs = duel["accuracy"]
        assert ours >= theirs or ours == max(accuracies)
        assert duel["difference"]["value"] == pytest.approx(duel["gap"][0] - duel["gap"][1])
    assert "The cut takes away" in shown
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Which words make the gap" in page
    tables = (tmp_path / "out" / "tables.md").read_text()
    assert "One word after the other" in tables
    assert "| AUC before | from | to | AUC after | from | to |" in re.sub(" +", " ", tables)
    leak = after["leaks"][0]["auc"]
    shown_leaks = [f"{leak[key]:.3f}".rstrip("0") for key in ("value", "low", "high")]
    (line,) = [
        k for k in tables.splitlines() if "open words" in k and "| surgery |" in k and "linear" in k
    ]
    assert all(value.rstrip(".") in line for value in shown_leaks)
    assert found["evaluation"] is None
    assert "| mean FPR gap gone, % |" in tables
    assert "surgery with 1 words" not in shown
    widths = [line.count("|") - 1 for line in tables.splitlines() if line.startswith("|")]
    assert max(widths) <= 9  # more is wider than a page
    on_front = [line for line in tables.splitlines() if line.endswith("| yes |")]
    told = "so there is no curve" in page
    assert told == (len({line.split("|")[6] for line in on_front}) < 2)
    assert told != ("<svg" in page)
    shown, _ = run("run", file, "--output", tmp_path / "out")  # what is trained is kept
    assert "is trained already" in shown
    shown, _ = run("run", file, "--output", tmp_path / "out", "--dry-run")
    assert "1 run, 1 of them finished" in shown
    changed = ("--set", "train.epochs=2")
    _, error = run("run", file, "--output", tmp_path / "out", *changed, code=2)
    assert "holds a run with other settings" in error
    changed = ("--set", "planted.word=house")
    _, error = run("run", file, "--output", tmp_path / "out", *changed, code=2)
    assert "holds a run on other texts" in error


def test_two_seeds(folder: Path, tmp_path: Path) -> None:
    file = write(folder, planted=PLANTED.model_dump(), words=3, fitted_rows=80)
    shown, _ = run("run", file, "--output", tmp_path, "--seeds", 2)
    found = json.loads((tmp_path / "results.json").read_text())
    table = found["parts"]["Seeds"]["tables"][0]
    assert table["columns"][:4] == ["treatment", "accuracy, %", "least", "most"]
    rows = {row[0]: row for row in table["rows"]}
    each = [json.loads((tmp_path / f"seed{i}" / "results.json").read_text()) for i in (0, 1)]
    gaps = [100 * one["comparison"][0]["bias"]["mean_fpr_gap"]["value"] for one in each]
    assert rows["baseline"][4:7] == pytest.approx([sum(gaps) / 2, min(gaps), max(gaps)])
    assert "surgery: accuracy, %" in shown


def test_groups_of_a_column(folder: Path, tmp_path: Path) -> None:
    biased = {"dataset": str(folder / "data"), "choose": "validation", "column": "group"}
    words = folder / "words.yaml"
    words.write_text("groups:\n  things:\n    words: [cast]\n", encoding="utf-8")
    file = write(
        folder, biased=biased, concept=str(words), evaluate=["calibration", "plausibility"]
    )
    run("run", file, "--output", tmp_path / "out")
    found = json.loads((tmp_path / "out" / "results.json").read_text())
    steps = found["evaluation"]
    assert set(steps) == {"calibration", "plausibility"}
    assert steps["calibration"]["metrics"]["ece"]["value"] >= 0
    assert steps["plausibility"]["metrics"]["plausibility_auprc"]["value"] > 0
    (rationales,) = steps["plausibility"]["tables"]
    assert rationales["rows"][0][1] > 100  # texts that people marked
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Do probabilities mean what they say?" in page
    assert "Do people mark the same words?" in page
    groups = found["comparison"][0]["bias"]["groups"]
    assert {group["name"] for group in groups} == {"cast", "other"}


def test_the_halves_share_no_frame(folder: Path) -> None:
    other = folder / "other"
    other.mkdir()
    terms = ["gay", "deaf", "jewish"]
    texts = [f"{name} is a {term} person" for name in map(str, range(40)) for term in terms]
    labels = ["positive" if i % 2 else "negative" for i in range(len(texts))]
    write_columns(other / "test.csv", {"text": texts, "label": labels, "term": terms * 40})
    biased = {"dataset": str(other), "rows": 60, "column": "term"}
    config = load_study(write(folder, biased=biased))
    assert isinstance(config, SurgeryConfig)
    found = load_study_data(config, resolve_config(config.train))
    halves = [{text.split()[0] for text in data.texts} for data in (found.choosing, found.measured)]
    assert not halves[0] & halves[1]
    assert [len(half) for half in halves] == [20, 20]
    assert found.frames(found.measured).max() == 19
    assert "religion" in found.concept


def test_the_front_has_no_point_that_another_beats() -> None:
    assert pareto([(0.3, 0.9), (0.2, 0.9), (0.2, 0.9), (0.1, 0.8), (0.15, 0.7)]) == [1, 3]


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
    rows = {"dataset": str(folder / "data"), "choose": "validation", "rows": 60}
    for changes, message in (
        ({"planted": None}, "biased rows or a planted word; expected one"),
        (
            {"planted": {"word": "a", "label": "b", "shar": 1}},
            "unknown key 'planted.shar'; did you",
        ),
        (
            {"planted": {"word": "a", "label": "b", "share": 2}},
            "planted.share is 2; expected a number above 0 and at most 1.",
        ),
        ({"study": ["surgery"]}, "study is ['surgery']; known: experiment"),
        (
            {"biased": {"dataset": "x", "split": "a", "choose": "a", "column": "c"}},
            "choose and split are both 'a'",
        ),
        (
            {"biased": {"dataset": "x", "column": "c", "terms": "t"}},
            "biased has column and terms; expected one of column, columns and terms",
        ),
        (
            {"biased": {"dataset": str(folder / "data"), "column": "group"}},
            "the task's own, and choose is null",
        ),
        (
            {"planted": PLANTED.model_dump(), "concept": "identity"},
            "the concept of a planted word is that word",
        ),
        (
            {"planted": {"word": " ", "label": "b"}},
            "planted.word is ' '; expected a text of the form ^\\w+$.",
        ),
        ({"planted": PLANTED.model_dump(), "evaluate": ["plausible"]}, "'plausible' is not known"),
        ({"study": "surgry"}, "study is 'surgry'; did you mean 'surgery'?"),
        ({"planted": PLANTED.model_dump(), "word": 3}, "unknown key 'word'; did you mean 'words'?"),
        # told before the training, so that the folder of the run is not there
        ({"planted": PLANTED.model_dump(), "positive": ["good"]}, "positive classes are ['good']"),
        ({"biased": {**rows, "column": "grup"}}, "grup"),
        ({"biased": {**rows, "terms": "identiti"}}, "identiti"),
    ):
        _, error = run("run", write(folder, **changes), "--output", tmp_path / "x", code=2)
        assert message in error
        assert len(error.strip().splitlines()) == 1
    _, error = run("run", tmp_path / "no.yaml", code=2)
    assert "was not found; expected a YAML file with a study" in error
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("name", ["surgery", "surgery-civil", "surgery-planted", "hatexplain"])
def test_the_experiments_are_whole(name: str) -> None:
    assert load_study(Path("experiments") / f"{name}.yaml").study == "surgery"  # type: ignore[attr-defined]


def test_without_its_data_the_fallback_is_run(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LEXICAL_SAE_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    small = write(folder, planted=PLANTED.model_dump(), largest_loss=0.5, quick={"words": 2})
    biased = {"dataset": "bias_madlibs", "column": "identity_term"}
    file = write(folder, biased=biased, fallback=small.name, quick={"words": 3})
    shown, _ = run("run", file, "--quick")
    told = " ".join(shown.split())
    assert "bias_madlibs is not here (LEXICAL_SAE_DATA is not set)" in told
    assert f"{small.name} is run." in told
    # a folder of its own: the study itself can still be run once its data are here
    assert [one.name for one in (tmp_path / "runs").iterdir()] == [f"{small.stem}-quick"]
    found = json.loads((tmp_path / "runs" / f"{small.stem}-quick" / "results.json").read_text())
    assert found["config"]["words"] == 2
    _, error = run("run", write(folder, biased=biased), code=2)
    assert "in the folder that LEXICAL_SAE_DATA names" in error
    for other, message in (
        ("no.yaml", "fallback is 'no.yaml'; expected the name of a study file"),
        (3, "fallback is 3; expected the name of a study file"),
        (file.name, "which has one too"),
    ):
        _, error = run("run", write(folder, biased=biased, fallback=other), code=2)
        assert message in error


@pytest.mark.parametrize("name", ["surgery", "surgery-civil"])
def test_the_experiments_fall_back_to_what_the_demo_has(name: str) -> None:
    file = Path("experiments") / f"{name}.yaml"
    other = fallback_of(file)
    assert other is not None
    for quick in (False, True):
        assert isinstance(load_study(file, quick=quick), SurgeryConfig)
        config = load_study(other, quick=quick)
        assert isinstance(config, SurgeryConfig)
        assert (config.train["dataset"], config.biased) == ("movie_snippets", None)


@pytest.mark.skipif("LEXICAL_SAE_DATA" not in os.environ, reason="LEXICAL_SAE_DATA is not set")
@pytest.mark.parametrize("name", ["surgery", "surgery-civil", "hatexplain"])
def test_the_rows_of_the_experiments_fit_their_task(name: str) -> None:
    config = load_study(Path("experiments") / f"{name}.yaml", ["biased.rows=60"])
    assert isinstance(config, SurgeryConfig)
    found = load_study_data(config, resolve_config(config.train))
    assert len(found.choosing) == len(found.measured) == 60
    assert found.groups(found.measured)
    assert set(config.positive) <= set(found.measured.label_names)


def test_the_summary_names_the_best_cut_that_test_rows_bear() -> None:
    gaps, right = (0.30, 0.20, 0.14, 0.10), (0.91, 0.905, 0.902, 0.88)
    points = [Point("w", Estimate(g), Estimate(r)) for g, r in zip(gaps, right, strict=True)]
    (line,) = bounded(points, 0.01)
    assert "the first 2 words, gap 14.00 points, 53.3 % of it gone (at least half)" in line
    assert "accuracy -0.80 points" in line
    (line,) = bounded(points, 0.0)
    assert "the first 0 words, gap 30.00 points, 0.0 % of it gone (less than half)" in line
    assert bounded(points[:1], 0.01) == []
