"""The plan of a study: sizes of backbones that are not here, and the rows that would be used."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from transformers import BertConfig

from lexical_sae.studies import published_backbone
from lexical_sae.studies.files import load_study, study_files
from lexical_sae.studies.plan import plan_study
from lexical_sae.studies.planned_model import plan_run
from lexical_sae.studies.published_backbone import published, published_config
from lexical_sae.studies.registry import STUDIES
from lexical_sae.training.config import DEFAULT_BACKBONE, resolve_config
from tests.command_line import run
from tests.studies.conftest import StudyFiles
from tests.text.conftest import write_columns

PAPER = Path(__file__).parents[2] / "experiments" / "paper"
# millions of parameters of the encoder with the layers before its decoder, as their authors count
SIZES = {
    "distilbert/distilbert-base-uncased": 67,
    "google-bert/bert-base-uncased": 110,
    "FacebookAI/roberta-base": 125,
    "microsoft/deberta-v3-base": 184,
    "answerdotai/ModernBERT-base": 149,
}


@pytest.mark.parametrize("backbone", SIZES)
def test_a_published_config_gives_size_and_memory(backbone: str) -> None:
    given = {"dataset": "sst2", "backbone": backbone, "max_length": 16, "batch_size": 2}
    twin = plan_run(resolve_config({**given, "dense_twin": True}, where="t"), None, None)
    ours = plan_run(resolve_config(given, where="t"), None, None)
    assert twin is not None
    assert ours is not None
    assert twin.parameters / 1e6 == pytest.approx(SIZES[backbone], abs=1)
    config = published_config(backbone)
    assert config is not None
    # the dictionary is at most the vocabulary: its rows, and what a head adds to each
    assert ours.parameters > twin.parameters + config.vocab_size * config.hidden_size
    for one in (twin, ours):
        assert one.by_config
        # weights, gradients and two states of Adam for all but the frozen ones
        assert 12 * twin.parameters < one.memory < 30 * ours.parameters
    assert published_config(backbone.split("/")[1]) is not None


def test_every_backbone_of_the_paper_is_known() -> None:
    named = set()
    for file in study_files(PAPER):
        config = load_study(file)
        named |= {cell.backbone for cell in STUDIES[config.study].cells(config)}  # type: ignore[attr-defined]
    assert named - {DEFAULT_BACKBONE} == set(published())
    for name, facts in published().items():
        assert name in facts["source"]


def test_the_lines_say_where_the_size_is_from() -> None:
    shown, _ = run("run", PAPER / "bert-base.yaml", "--dry-run", "--set", "seeds=1")
    twin, ours = [line for line in shown.splitlines() if line.startswith("[")]
    assert ": 109.5M parameters by its published config, batches of 32 texts of at" in twin
    assert "at most 140.8M parameters by its published config" in ours
    for line in (twin, ours):
        assert line.endswith(" GiB")
        assert "not known" not in line


def test_with_the_hub_in_reach_only_the_config_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    class Hub:
        @staticmethod
        def from_pretrained(name: str, cache_dir: str) -> BertConfig:
            asked.append(name)
            assert Path(cache_dir).is_dir()
            return BertConfig(hidden_size=32, num_hidden_layers=1, num_attention_heads=2)

    monkeypatch.setattr(published_backbone, "hub_answers", lambda name, kind: True)
    monkeypatch.setattr(published_backbone, "AutoConfig", Hub)
    config = resolve_config({"dataset": "sst2", "backbone": "someone/tiny-plan"}, where="t")
    found = plan_run(config, None, None)
    assert asked == ["someone/tiny-plan"]
    assert found is not None
    assert found.length == 512


def test_rows_are_those_that_the_study_uses(files: StudyFiles, tmp_path: Path) -> None:
    """Without a test split the validation rows are measured on, and others are cut from train."""
    data = files.without_test(tmp_path)
    file = files.write("ablation", datasets=[str(data), str(files.data)], held_out_rows=20)
    shown, _ = run("run", file, "--dry-run", "--output", tmp_path / "out")
    lines = shown.splitlines()
    assert f"{data}: 89 train, 7 validation, 20 test texts, 2 labels" in lines
    assert f"{files.data}: 96 train, 20 validation, 20 test texts, 2 labels" in lines


def test_a_backbone_that_nobody_knows_is_said_so(files: StudyFiles, tmp_path: Path) -> None:
    config = load_study(files.write("ablation", backbones=["nobody/no-model"]))
    assert (
        "its size is known once it is" in plan_study(STUDIES["ablation"], config, tmp_path).lines[1]
    )


def test_a_study_that_is_no_grid_tells_the_rows_that_it_uses(
    files: StudyFiles, tmp_path: Path
) -> None:
    data = files.without_test(tmp_path)
    train = {"backbone": str(files.backbone), "text_column": "text", "label_column": "label"}
    both = [{"dataset": str(one), **train} for one in (data, files.data)]
    long = {"study": "long_context", "train_rows": 30}
    senses = {"study": "wic", "pairs": None, "train_rows": 30}
    for study in (long, senses):
        shown = _planned(tmp_path, {**study, "train": both[0]})
        assert f"{data}: 30 train, 7 validation, 40 test texts, 2 labels" in shown.splitlines()
    planted = {"planted": {"word": "x", "label": "positive"}, "positive": ["positive"]}
    surgery = {"study": "surgery", "held_out_rows": 60, **planted}
    shown = _planned(tmp_path, {**surgery, "train": both[1]})
    assert f"{files.data}: 96 train, 40 validation, 48 test texts, 2 labels" in shown.splitlines()
    shown = _planned(tmp_path, {**surgery, "train": both[0]}, code=2)
    assert "cannot run: " in shown
    assert "has no train, validation and test split of labelled texts" in shown
    assert "1 run, 0 of them finished, 1 cannot run" in shown


def test_held_out_rows_of_surgery_and_the_rows_that_gaps_are_measured_on(
    local: Path, tmp_path: Path
) -> None:
    biased = {"dataset": "bias_madlibs", "column": "term", "rows": 70}
    study = {"study": "surgery", "train": {"dataset": "task"}, "positive": ["a"], "biased": biased}
    shown = _planned(tmp_path, {**study, "held_out_rows": 60})
    assert "task: 200 train, 60 validation, 60 test texts, 2 labels" in shown
    told = "bias_madlibs: up to 50 of 100 test rows to choose words on, and up to 50 others to"
    assert told in shown
    chosen = {**biased, "choose": "validation"}
    shown = _planned(tmp_path, {**study, "biased": chosen})
    told = "bias_madlibs: 40 of 40 validation rows to choose words on, 70 of 100 test rows to"
    assert told in shown
    shown = _planned(tmp_path, {**study, "biased": {**biased, "split": "train"}}, code=2)
    assert "cannot run: bias_madlibs: it has no split 'train'; expected one of" in shown


def test_pairs_and_contexts_are_named(local: Path, tmp_path: Path) -> None:
    study = {"study": "wic", "contexts": {"task": 150, "imdb": 9}}
    shown = _planned(tmp_path, study)
    assert shown.splitlines() == [
        "wic: 30 train, 20 validation, 25 test pairs",
        "task: 150 of 200 train texts, to look for contexts in",
        "imdb: not here yet (looked for in LEXICAL_SAE_DATA, then hub:stanfordnlp/imdb); its rows "
        "are known once it is",
        f"0 runs: the study trains nothing; the folder is {tmp_path / 'out'}; nothing was trained "
        "or written",
    ]
    shutil.rmtree(local / "wic")
    shown = _planned(tmp_path, study, code=2)
    assert f"cannot run: wic is not here ({local} has no folder wic)" in shown
    shown = _planned(tmp_path, {**study, "train": {"dataset": "task"}, "seeds": 2}, code=2)
    assert "4 runs, 0 of them finished, 4 cannot run" in shown


def test_the_fallback_is_planned_where_data_are_not_to_be_had(local: Path, tmp_path: Path) -> None:
    planted = {"planted": {"word": "x", "label": "a"}, "positive": ["a"]}
    surgery = {"study": "surgery", "train": {"dataset": "task"}}
    other = tmp_path / "planted.yaml"
    other.write_text(yaml.safe_dump({**surgery, **planted}))
    biased = {"dataset": "bias_madlibs", "column": "term"}
    study = {**surgery, "positive": ["a"], "biased": biased, "fallback": other.name}
    assert other.name not in _planned(tmp_path, study)
    shown = _planned(tmp_path, {**study, "train": {"dataset": "civil_comments"}})
    assert shown.splitlines()[-1] == f"where the data cannot be had, {other} is run instead"
    shutil.rmtree(local / "bias_madlibs")
    shown = _planned(tmp_path, study)
    first, second = shown.split(f"Instead, {other} would be run.")
    assert "1 run, 0 of them finished, 1 cannot run" in first
    assert "1 run, 0 of them finished; the folder is" in second


def test_why_runs_cannot_be_is_told_once_and_by_the_exit_code(
    files: StudyFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LEXICAL_SAE_DATA", raising=False)
    gone = str(tmp_path / "no.csv")
    file = files.write("ablation", datasets=[gone, str(files.data)], seeds=2, compared=["CE only"])
    shown, _ = run("run", file, "--dry-run", "--output", tmp_path / "out", code=1)
    assert shown.count("cannot run: ") == 1
    assert f"4 of 8 runs, {gone}, backbone: cannot run: {gone} was not found" in shown
    assert "8 runs, 0 of them finished, 4 cannot run" in shown
    one = ("--set", f"datasets=[{gone}]", "--output", tmp_path / "out")
    shown, _ = run("run", file, "--dry-run", *one, code=2)
    assert "4 runs, 0 of them finished, 4 cannot run" in shown
    shown, _ = run("run", files.write("ablation", datasets=["hatexplain"]), "--dry-run", code=2)
    assert "cannot run: hatexplain is not here" in shown


def test_sentences_of_a_tagger_are_no_texts() -> None:
    backbone = "train.backbone=google-bert/bert-base-uncased"
    dry = ("--dry-run", "--set", backbone)
    for more in ((), ("--set", "train.dataset=hub:nobody/nothing")):
        shown, _ = run("run", PAPER.parent / "ner.yaml", *dry, *more)
        assert shown.count(" sentences of at most 512 tokens") == 2
        assert " texts" not in shown


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of data with a task, rows with groups, and pairs."""
    folder = tmp_path / "local"
    for name, columns, sizes in (
        ("task", ("text", "label"), (200, 80, 90)),
        ("bias_madlibs", ("text", "label", "term"), (0, 40, 100)),
        ("wic", ("sentence1", "sentence2", "label_name"), (30, 20, 25)),
    ):
        (folder / name).mkdir(parents=True)
        for split, size in zip(("train", "validation", "test"), sizes, strict=True):
            rows = {
                c: [("a", "b")[i % 2] if "label" in c else f"{c} {i}" for i in range(size)]
                for c in columns
            }
            if size:
                write_columns(folder / name / f"{split}.csv", rows)
    monkeypatch.setenv("LEXICAL_SAE_DATA", str(folder))
    return folder


def _planned(folder: Path, study: dict[str, Any], code: int = 0) -> str:
    file = folder / "study.yaml"
    file.write_text(yaml.safe_dump(study, sort_keys=False), encoding="utf-8")
    return run("run", file, "--dry-run", "--output", folder / "out", code=code)[0]
