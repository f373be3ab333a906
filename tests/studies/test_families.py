"""Every family of backbones that experiments/paper names, from a study file to its report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lexical_sae.studies.files import read_study
from tests.command_line import run
from tests.studies.conftest import StudyFiles
from tests.tiny import FAMILIES, tiny_backbone, tiny_tokenizer

PAPER = Path(__file__).parents[2] / "experiments" / "paper"
FILES = {
    "distilbert": "distilbert",
    "bert-base": "bert",
    "roberta-base": "roberta",
    "deberta-v3-base": "deberta-v2",
    "modernbert-base": "modernbert",
}


@pytest.mark.parametrize(("file", "family"), FILES.items(), ids=FILES)
def test_a_family_from_end_to_end(
    files: StudyFiles, tmp_path: Path, file: str, family: str
) -> None:
    """The paper's own settings on a tiny model of the family; only rows and epochs are fewer."""
    backbone = tmp_path / "backbone"
    tiny_backbone(family).save_pretrained(backbone)
    tiny_tokenizer(FAMILIES[family][1]).save_pretrained(backbone)
    small = {
        **{"dataset": str(files.data), "text_column": "text", "label_column": "label"},
        **{"backbone": str(backbone), "epochs": 1, "batch_size": 16, "max_length": 24},
        **{"start_words": 30},
    }
    settings = [f"train.{name}={value}" for name, value in small.items()]
    settings += ["steps=[task, identity]", "seeds=1", "twin=false"]
    assigned = [part for one in settings for part in ("--set", one)]
    run("run", PAPER / f"{file}.yaml", *assigned, "--output", tmp_path / "out")
    found = json.loads((tmp_path / "out" / "results.json").read_text())
    assert found["failed"] == []
    assert found["parts"]["Identity"]["metrics"]["residual_relative"]["value"] < 1e-5
    assert (tmp_path / "out" / "report.html").is_file()


def test_the_backbones_are_those_of_the_table() -> None:
    wanted = {read_study(PAPER / f"{file}.yaml")["train"]["backbone"] for file in FILES}
    assert set(read_study(PAPER / "backbones.yaml")["backbones"]) == wanted
