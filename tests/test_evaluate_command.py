"""`lexical-sae evaluate` on a small trained run and on a model alone."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from rich.console import Console

from lexical_sae.training.config import resolve_config
from lexical_sae.training.run import train_run
from tests.command_line import run
from tests.text.conftest import write_columns
from tests.training.small import save_backbone, small_dataset

SMALL = {
    "epochs": 2,
    "batch_size": 8,
    "target_words": 4,
    "start_words": 16,
    "learning_rate": 1e-3,
    "dictionary_rate_factor": 1,
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("runs")
    backbone, data = save_backbone(folder / "backbone"), folder / "data"
    data.mkdir()
    for split, rows, seed in (("train", 64, 0), ("validation", 16, 1), ("test", 16, 2)):
        found = small_dataset(rows, seed)
        names = [found.label_names[label] for label in found.labels]
        write_columns(data / f"{split}.csv", {"text": found.texts, "label": names})
    for name, twin in (("ours", False), ("twin", True)):
        given = {"dataset": str(data), "backbone": str(backbone), "dense_twin": twin}
        config = resolve_config({**given, **SMALL})
        train_run(config, folder / name, console=Console(quiet=True))
    return folder / "ours", folder / "twin"


def test_the_whole_evaluation_leaves_a_report_and_numbers(runs: tuple[Path, Path]) -> None:
    ours, twin = runs
    shown, _ = run("evaluate", str(ours), "--against", str(twin), "--peer-texts", "2", "--tables")
    assert "Every explanation adds up to its logit" in shown
    found = json.loads((ours / "evaluation" / "evaluation.json").read_text())
    steps = found["steps"]
    assert steps["autoencoder"]["tables"][0]["rows"][-1][0] == "this model's open words"
    assert steps["drift"]["metrics"]["untrained_share"]["value"] is not None
    assert steps["stability"]["metrics"]["same_explanation"]["value"] == 1.0
    assert steps["stability"]["metrics"]["batch_difference"]["value"] < 1e-4
    titles = [table["title"] for table in steps["input"]["tables"]]
    assert len(titles) == 4  # NAOPC and the top words removed, of this model and of its twin
    card = (ours / "model" / "README.md").read_text()
    assert "library_name: lexical-sae" in card
    assert steps["identity"]["title"] in card
    assert found["identity"]["model"] in card
    assert (ours / "evaluation" / "tables.md").read_text().startswith("### All measures")
    assert r"\toprule" in (ours / "evaluation" / "tables.tex").read_text()
    page = (ours / "evaluation" / "report.html").read_text()
    assert "Is the explanation true?" in page
    for step in steps.values():
        assert step["title"] in page
    articles = re.findall(r'<article aria-label="([^"]+)">(.*?)</article>', page, re.DOTALL)
    without = {title for title, article in articles if "<figure" not in article}
    # no person has marked these texts
    assert without <= {"Summary", "Record", steps["plausibility"]["title"]}
    assert found["config"]["settings"]["target_words"] == SMALL["target_words"]
    assert "settings.target_words" in page


def test_chosen_steps_as_json(runs: tuple[Path, Path], tmp_path: Path) -> None:
    flags = ("--steps", "identity, completeness", "--output", str(tmp_path / "out"), "--json")
    shown, _ = run("evaluate", str(runs[0]), *flags)
    assert list(json.loads(shown)["steps"]) == ["identity", "completeness"]
    flags = ("--steps", "circuits", "--output", str(tmp_path / "out"), "--json")
    choice = ("--circuit-mass", "0.5", "--circuit-split", "validation")
    shown, _ = run("evaluate", str(runs[0]), *flags, *choice)
    found = json.loads(shown)
    assert found["identity"]["circuit_mass"] == 0.5
    assert "16 texts of the validation split" in found["steps"]["circuits"]["notes"][0]


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--steps", "identty"], "did you mean 'identity'?"),
        (["--split", "nowhere"], "no split 'nowhere'"),
        (["--against", "{ours}"], "expects the run of a dense twin"),
        (["--against", "nowhere"], "was not found"),
        (["--circuit-fraction", "0.2", "--circuit-mass", "0.5"], "expected one"),
        (["--circuit-fraction", "2"], "fraction is 2.0"),
        (["--circuit-split", "test"], "the split that is measured"),
        (["--circuit-mass", "0.5", "--quick"], "leave out --quick"),
    ],
)
def test_bad_input_gets_one_sentence(
    runs: tuple[Path, Path], flags: list[str], sentence: str
) -> None:
    given = [flag.replace("{ours}", str(runs[0])) for flag in flags]
    _, errors = run("evaluate", str(runs[0]), *given, code=2)
    assert sentence in " ".join(errors.split())


def test_a_limit_takes_rows_of_every_class_from_a_sorted_split(
    runs: tuple[Path, Path], tmp_path: Path
) -> None:
    found = small_dataset(16, 3)
    rows = sorted(zip(found.labels, found.texts, strict=True))
    columns = {
        "text": [text for _, text in rows],
        "label": [found.label_names[label] for label, _ in rows],
    }
    (tmp_path / "data").mkdir()
    write_columns(tmp_path / "data" / "test.csv", columns)
    flags = ("--dataset", str(tmp_path / "data"), "--output", str(tmp_path / "out"), "--json")
    for more in (("--steps", "task"), ("--quick",)):
        shown, _ = run("evaluate", str(runs[0]), *flags, *more, "--limit", "4")
        assert json.loads(shown)["notes"] == []
        shown, _ = run("evaluate", str(runs[0]), *flags, *more, "--limit", "1")
        assert "so the numbers say nothing of it" in json.loads(shown)["notes"][0]


def test_a_twin_must_have_the_labels_of_the_model(runs: tuple[Path, Path], tmp_path: Path) -> None:
    other = tmp_path / "twin"
    shutil.copytree(runs[1] / "model", other)
    config = json.loads((other / "config.json").read_text())
    config["labels"][0] = "elsewhere"
    (other / "config.json").write_text(json.dumps(config))
    _, errors = run("evaluate", str(runs[0]), "--against", str(other), code=2)
    assert "elsewhere" in errors
    assert "train a twin on the same data" in " ".join(errors.split())
