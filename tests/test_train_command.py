"""`lexical-sae train`: one run of everything, what it leaves, and what bad input gets."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from lexical_sae.estimators import LexicalClassifier
from lexical_sae.model.dense_twin import DenseTwin
from tests.training.small import save_backbone, small_dataset

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def lexical_sae(*arguments: str, timeout: float = 240) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "lexical_sae", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, timeout=timeout)


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("train")
    backbone = save_backbone(folder / "backbone")
    data = folder / "reviews.jsonl"
    found = small_dataset(200)
    data.write_text(
        "\n".join(
            json.dumps({"text": text, "label": found.label_names[label]})
            for text, label in zip(found.texts, found.labels, strict=True)
        )
    )
    settings = {
        "dataset": str(data),
        "backbone": str(backbone),
        "epochs": 2,
        "batch_size": 8,
        "target_words": 4,
        "start_words": 16,
        "learning_rate": "LR",
    }
    file = folder / "run.yaml"
    file.write_text(yaml.safe_dump(settings).replace("LR", "3e-3"))
    return file


@pytest.fixture(scope="module")
def finished(config: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("runs") / "first"
    done = lexical_sae("train", str(config), "--output", str(output))
    assert done.returncode == 0, done.stderr[-3000:]
    assert "accuracy on test" in done.stdout
    assert "\x1b" not in done.stdout
    return output


def test_the_folder_of_a_run(finished: Path) -> None:
    left = {path.name for path in finished.iterdir()}
    assert left == {
        *("model", "config.yaml", "metrics.json", "history.jsonl"),
        *("environment.json", "curves.png"),
    }
    metrics = json.loads((finished / "metrics.json").read_text())
    assert metrics["test"]["max_residual"] < 1e-5
    assert 0 <= metrics["test"]["circuit_agreement"] <= 1
    assert set(metrics["seconds"]) >= {"preparation", "training", "evaluation"}
    resolved = yaml.safe_load((finished / "config.yaml").read_text())
    assert resolved["target_words"] == 4
    assert "label_smoothing" in resolved
    assert json.loads((finished / "environment.json").read_text())["seeds"] == {"seed": 0}


def test_a_run_can_be_predicted_with(finished: Path, tmp_path: Path) -> None:
    texts = tmp_path / "in.csv"
    texts.write_text("text\nthe film is lovely\nthe film is dull\n")
    answer = tmp_path / "out.csv"
    done = lexical_sae("predict", str(finished), "--input", str(texts), "--output", str(answer))
    assert done.returncode == 0, done.stderr
    assert answer.read_text().count("\n") == 3
    by_hand = LexicalClassifier.load(finished).predict(["the film is lovely", "the film is dull"])
    rows = [line.split(",")[1] for line in answer.read_text().splitlines()[1:]]
    assert rows == by_hand.tolist()


def test_the_dense_twin(config: Path, tmp_path: Path) -> None:
    output = tmp_path / "twin"
    done = lexical_sae("train", str(config), "--dense-twin", "--output", str(output))
    assert done.returncode == 0, done.stderr[-3000:]
    twin = DenseTwin.from_pretrained(output / "model")
    assert twin.config.labels == ["negative", "positive"]
    metrics = json.loads((output / "metrics.json").read_text())
    assert set(metrics["test"]) == {"accuracy", "ce"}
    refused = lexical_sae("predict", str(output), "--input", str(config), "--output", "x.csv")
    assert refused.returncode == 2


def test_interrupt_saves_and_resume_goes_on(config: Path, tmp_path: Path) -> None:
    output = tmp_path / "run"
    flags = ["train", str(config), "--output", str(output), "--epochs", "30"]
    running = subprocess.Popen(
        [sys.executable, "-m", "lexical_sae", *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )
    history = output / "history.jsonl"
    deadline = time.time() + 120
    while time.time() < deadline and not (history.exists() and history.stat().st_size > 500):
        time.sleep(0.2)
    running.send_signal(signal.SIGINT)
    said, errors = running.communicate(timeout=120)
    assert running.returncode == 130, errors[-3000:]
    assert f"lexical-sae train --resume --output {output}" in " ".join(said.split())
    assert "Traceback" not in errors
    config_file = output / "config.yaml"
    config_file.write_text(config_file.read_text().replace("epochs: 30", "epochs: 3"))
    done = lexical_sae("train", "--resume", "--output", str(output))
    assert done.returncode == 0, done.stderr[-3000:]
    steps = [json.loads(line)["step"] for line in history.read_text().splitlines()]
    assert steps == sorted(steps)
    again = lexical_sae("train", "--resume", "--output", str(output))
    assert again.returncode == 2
    assert "finished" in again.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--output", "{new}"], "Give a YAML file or --dataset"),
        (["{config}"], "No --output was given"),
        (["{config}", "--output", "{new}", "--set", "epoch=3"], "epochs"),
        (["{config}", "--output", "{new}", "--target-words", "0"], "target_words"),
        (["{config}", "--output", "{new}", "--recipe", "nothing"], "nothing"),
        (["{config}", "--output", "{taken}"], "not empty"),
        (["--resume", "--output", "{new}"], "holds no run"),
        (["{config}", "--resume", "--output", "{new}"], "nothing else"),
        (["nowhere.yaml", "--output", "{new}"], "nowhere.yaml"),
        (["{config}", "--output", "{new}", "--set", "max_length=9999"], "9999"),
    ],
)
def test_bad_input_gets_one_sentence(
    config: Path, finished: Path, tmp_path: Path, arguments: list[str], sentence: str
) -> None:
    names = {"new": str(tmp_path / "new"), "config": str(config), "taken": str(finished)}
    done = lexical_sae("train", *(argument.format(**names) for argument in arguments))
    assert done.returncode == 2, done.stdout + done.stderr
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr
