"""The plan of a study: sizes of backbones that are not here, and the rows that would be used."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from transformers import BertConfig

from lexical_sae.studies import published_backbone
from lexical_sae.studies.files import load_study, study_files
from lexical_sae.studies.plan import plan_lines
from lexical_sae.studies.planned_model import plan_run
from lexical_sae.studies.published_backbone import published, published_config
from lexical_sae.studies.registry import STUDIES
from lexical_sae.training.config import DEFAULT_BACKBONE, resolve_config
from tests.command_line import run
from tests.studies.conftest import StudyFiles

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
    data = tmp_path / "data"
    data.mkdir()
    for split in ("train", "validation"):
        shutil.copy(files.data / f"{split}.csv", data)
    file = files.write("ablation", datasets=[str(data), str(files.data)], held_out_rows=20)
    shown, _ = run("run", file, "--dry-run", "--output", tmp_path / "out")
    lines = shown.splitlines()
    assert f"{data}: 89 train, 7 validation, 20 test texts, 2 labels" in lines
    assert f"{files.data}: 96 train, 20 validation, 20 test texts, 2 labels" in lines


def test_a_backbone_that_nobody_knows_is_said_so(files: StudyFiles, tmp_path: Path) -> None:
    config = load_study(files.write("ablation", backbones=["nobody/no-model"]))
    cells = STUDIES["ablation"].cells(config)[:1]
    assert "its size is known once it is" in plan_lines(cells, tmp_path)[1]
