"""Two processes with half a batch each train as one process with the whole batch does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from lexical_sae.training.history import read_history
from tests.tagged import TAGS, tagged_dataset
from tests.training.small import save_backbone, small_dataset

SETTINGS = {
    "epochs": 2,
    "batch_size": 8,
    "target_words": 4,
    "start_words": 16,
    "learning_rate": 0.001,
    "dropout": 0.0,  # drawn anew in each process
    "separation.form": "cosine",
    "sharpness": "{}",
    "frequency": "{}",
    "content": "{}",
    "model.positions": "words",
    "dictionary_rate_factor": 1,
    "weighting": "uncertainty",
}
COMPARED = (
    *("loss", "ce", "open_words", "completeness", "separation", "sparsity", "anchor", "guide"),
    *("distillation", "contrast"),
)


# for sentences: their words differ in number from process to process
TAGGING = {
    **SETTINGS,
    "recipe": "tagging",
    "separation.form": "contrastive",
    "sharpness": "null",
    "frequency": "null",
    "content": "null",
    "weighting": "sum",
}


def write_lines(file: Path, rows: Iterable[dict[str, Any]]) -> None:
    file.write_text("\n".join(map(json.dumps, rows)))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("files")
    save_backbone(folder / "backbone")
    data = folder / "data"
    data.mkdir()
    for split, rows, seed in (("train", 64, 0), ("validation", 16, 1), ("test", 16, 2)):
        found = small_dataset(rows, seed)
        texts = zip(found.texts, found.labels, strict=True)
        write_lines(
            data / f"{split}.jsonl",
            ({"text": text, "label": found.label_names[label]} for text, label in texts),
        )
        tagged = tagged_dataset(rows, seed)
        sentences = zip(tagged.tokens, tagged.tags, strict=True)
        (folder / "tagged").mkdir(exist_ok=True)
        write_lines(
            folder / "tagged" / f"{split}.jsonl",
            ({"tokens": words, "tags": [TAGS[tag] for tag in tags]} for words, tags in sentences),
        )
    return folder / "backbone", data


def run(
    launcher: list[str], files: tuple[Path, Path], output: Path, settings: dict[str, Any]
) -> list[dict[str, Any]]:
    backbone, data = files
    command = [*launcher, "-m", "lexical_sae", "train", "--dataset", str(data)]
    command += ["--backbone", str(backbone), "--output", str(output)]
    for name, value in settings.items():
        command += ["--set", f"{name}={value}"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return [line for line in read_history(output / "history.jsonl") if "loss" in line]


@pytest.mark.parametrize("task", ["classification", "tagging"])
def test_two_processes_give_the_losses_and_open_words_of_one(
    files: tuple[Path, Path], tmp_path: Path, task: str
) -> None:
    settings = SETTINGS
    if task == "tagging":
        files, settings = (files[0], files[1].parent / "tagged"), TAGGING
    one = run([sys.executable], files, tmp_path / "one", settings)
    launch = [sys.executable, "-m", "accelerate.commands.launch", "--cpu", "--num_processes", "2"]
    launch += ["--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no"]
    two = run(launch, files, tmp_path / "two", settings)
    assert [line["step"] for line in two] == [line["step"] for line in one]
    assert len(one) == 16
    assert all(("contrast" in line) == (task == "classification") for line in one)
    for alone, shared in zip(one, two, strict=True):
        for name in COMPARED:
            if name in alone:
                assert shared[name] == pytest.approx(alone[name], rel=2e-3, abs=2e-4), (
                    alone["step"],
                    name,
                )
    found = [json.loads((tmp_path / n / "metrics.json").read_text()) for n in ("one", "two")]
    assert found[0]["test"]["accuracy"] == found[1]["test"]["accuracy"]
    assert found[0]["test"]["open_words"] == pytest.approx(found[1]["test"]["open_words"], rel=0.01)
