"""The commands on a tagger: train, evaluate, predict, explain."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from tests.command_line import run
from tests.tagged import TAGS, tagged_dataset
from tests.training.small import save_backbone

TEXT = "the film is very funny."


def write_rows(path: Path, rows: int, seed: int) -> None:
    data = tagged_dataset(rows, seed)
    with path.open("w", encoding="utf-8") as file:
        for words, tags in zip(data.tokens, data.tags, strict=True):
            row = {"tokens": words, "tags": [TAGS[tag] for tag in tags]}
            file.write(json.dumps(row) + "\n")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a dataset, a file of one text and a trained run."""
    folder = tmp_path_factory.mktemp("tagger")
    backbone, data = save_backbone(folder / "backbone"), folder / "data"
    data.mkdir()
    write_rows(data / "train.jsonl", 80, 0)
    write_rows(data / "test.jsonl", 20, 1)
    (folder / "texts.csv").write_text(f'text\n"{TEXT}"\n', encoding="utf-8")
    flags = ["--epochs", 6, "--batch-size", 8, "--learning-rate", "3e-3", "--target-words", 4]
    flags += [
        "--set",
        "start_words=16",
        "--set",
        "anchor=null",
        "--set",
        "dictionary_rate_factor=1",
    ]
    flags += ["--backbone", backbone, "--dataset", data]
    _, error = run("train", "--output", folder / "no", "--recipe", "default", *flags, code=2)
    assert "expected recipe: tagging" in error
    shown, _ = run("train", "--output", folder / "run", "--recipe", "tagging", *flags)
    assert "F1 of entities on test:" in shown
    return folder


def test_evaluate_at_once(folder: Path) -> None:
    command = ("evaluate", folder / "run", "--quick")
    measured = json.loads(run(*command, "--json", "--topk-per-position", 3)[0])
    assert measured["rows"] == 20
    assert measured["open_words"] <= 3
    shown, _ = run(*command, "--limit", 5)
    assert "F1 of entities on test:" in shown
    assert "ART: F1" in shown
    assert "5 sentences" in shown


def test_the_whole_evaluation(folder: Path) -> None:
    shown, _ = run("evaluate", folder / "run", "--limit", 8, "--peer-texts", 2)
    assert "Its entities have an F1 of" in shown
    card = (folder / "run" / "model" / "README.md").read_text(encoding="utf-8")
    assert "pipeline_tag: token-classification" in card
    page = (folder / "run" / "evaluation" / "report.html").read_text(encoding="utf-8")
    assert "Entities of each type" in page


def test_predict(folder: Path, tmp_path: Path) -> None:
    source, answer = folder / "data" / "test.jsonl", tmp_path / "o.csv"
    shown, _ = run("predict", folder / "run", "--input", source, "--output", answer)
    assert "open words per word" in shown
    with answer.open(encoding="utf-8", newline="") as file:
        row = next(csv.DictReader(file))
    assert len(json.loads(row["predicted_tags"])) == len(json.loads(row["tokens"]))


def test_predict_of_texts(folder: Path, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    answer = tmp_path / "o.parquet"
    run("predict", folder / "run", "--input", folder / "texts.csv", "--output", answer)
    (written,) = pq.read_table(answer).to_pylist()
    assert written["words"] == ["the", "film", "is", "very", "funny", "."]
    assert {"text", "start", "end", "type", "score"} == set(written["entities"][0])


def test_explain(folder: Path, tmp_path: Path) -> None:
    found = json.loads(run("explain", folder / "run", "the film is dull.", "--json")[0])
    assert [token["text"] for token in found["tokens"]][:2] == ["the", "film"]
    page = tmp_path / "page.html"
    run("explain", folder / "run", "--input", folder / "texts.csv", "--html", page)
    assert "very funny" in page.read_text(encoding="utf-8")


def test_what_is_for_classifiers_is_refused(folder: Path, tmp_path: Path) -> None:
    _, error = run("explain", folder / "run", "the film", "--certify", code=2)
    assert "--certify is for classifiers" in error
    files = ("--input", folder / "texts.csv", "--output", tmp_path / "p.csv")
    _, error = run("predict", folder / "run", *files, "--policy", folder / "texts.csv", code=2)
    assert "this model tags words" in error
