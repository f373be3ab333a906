"""Datasets and recipes in one table; heads compared."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import ModuleType

import pytest
from rich.console import Console

from lexical_sae.evaluation.compared import Contest
from lexical_sae.evaluation.explainers import AT_INPUT
from lexical_sae.report.finding import Finding
from lexical_sae.studies import bcos_ablation, multi_dataset, sparsity_frontier
from lexical_sae.studies.arms_figure import arms_figures
from lexical_sae.studies.bcos_ablation import HEADS, BcosConfig
from lexical_sae.studies.cells import Cell, short_name
from lexical_sae.studies.experiment import OURS, ExperimentConfig, _written
from lexical_sae.studies.faithfulness import _compared
from lexical_sae.studies.grid import Outcome
from lexical_sae.training.config import DEFAULT_BACKBONE
from tests.command_line import run
from tests.studies.conftest import StudyFiles
from tests.studies.test_ablation import arm


def test_datasets_and_recipes_in_one_table(files: StudyFiles, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(files.data, other)
    datasets = {str(files.data): None, str(other): {"epochs": 0.5}}
    file = files.write("multi_dataset", datasets=datasets, recipes=["dense twin", "own"])
    run("run", file, "--output", tmp_path / "out")
    found = json.loads((tmp_path / "out" / "results.json").read_text())
    rows = found["parts"]["Grid"]["tables"][0]["rows"]
    assert [(row[0], row[2]) for row in rows] == [
        (name, arm) for name in datasets for arm in ("dense twin", "own")
    ]
    figures = found["parts"]["Grid"]["dots"]
    assert [[dot["name"] for dot in figure["dots"]] for figure in figures] == [
        ["dense twin", "own"]
    ] * 2
    assert len(list((tmp_path / "out" / "figures").glob("recipes-on-*.svg"))) == 2
    steps = [cell["steps"] for cell in found["cells"]]
    assert steps == [6, 6, 3, 3]


def test_heads(files: StudyFiles, tmp_path: Path) -> None:
    file = files.write("bcos_ablation", heads=["bcos, depth 2", "bcos, depth 3", "linear"])
    shown, _ = run("run", file, "--output", tmp_path)
    assert "the largest residual of a sum is" in shown
    assert "without a word the logit moves as its contribution says" in shown
    found = json.loads((tmp_path / "results.json").read_text())
    assert [cell["arm"] for cell in found["cells"]] == list(HEADS)
    table = found["parts"]["Heads"]["tables"][0]
    rows = {row[0]: dict(zip(table["columns"], row, strict=True)) for row in table["rows"]}
    linear = rows["linear"]
    assert linear["error of removal"] < 1e-5  # where removal is additive, nothing is off
    assert linear["correlation of removal"] > 0.9999
    assert all(row["error of removal"] is not None for row in rows.values())
    dots = found["parts"]["Heads"]["dots"][0]["dots"]
    assert [dot["name"] for dot in dots] == list(HEADS)
    assert (tmp_path / "figures").is_dir()


def test_every_head_can_be_trained() -> None:
    for cell in BcosConfig(train={"dataset": "sst2"}).cells():
        assert cell.config().settings.model.head == HEADS[cell.arm]["model"]["head"]


@pytest.mark.parametrize("study", [multi_dataset, bcos_ablation, sparsity_frontier])
def test_of_several_backbones_every_line_and_figure_names_its_own(study: ModuleType) -> None:
    arms = [arm("8", "1100", backbone=backbone) for backbone in ("wheel:one", "/here/two")]
    for each in arms:
        each.finished[0].found["max_relative_residual"] = 1e-6
    shown = study._lines(arms)
    assert [line.split(", 8")[0] for line in shown] == ["d, one", "d, two"]
    assert study._lines(arms[:1])[0].startswith("d, 8")
    assert [plot.title for plot in arms_figures("T", arms)] == ["T on d, one", "T on d, two"]


def evaluated(folder: Path, cell: Cell) -> Outcome:
    """A cell whose evaluation holds one table of explainers."""
    contest = Contest("ours")
    contest.naopc = {"ours": [0.5], "LIME": [0.4]}
    rest: dict[str, list[float | None]] = {name: [1.0] for name in contest.naopc}
    contest.comprehensiveness = contest.sufficiency = contest.seconds = rest
    found = Finding(tables=(contest.table(AT_INPUT),), notes=("a note",)).to_dict()
    where = folder / cell.path / "evaluation"
    where.mkdir(parents=True)
    step = {"title": "Input", "question": "?", "seconds": 1.0, **found}
    written = {"metrics": {}, "failed": ["identity"], "steps": {"input": step}}
    (where / "evaluation.json").write_text(json.dumps(written))
    return Outcome(cell, {"right": "1100", "accuracy": 0.5})


def test_explainers_of_several_backbones_are_told_apart(tmp_path: Path) -> None:
    cells = [Cell("d", name, OURS, 0, {}) for name in (DEFAULT_BACKBONE, "other")]
    found, lines = _compared([evaluated(tmp_path, cell) for cell in cells], tmp_path)
    names = [f"d, {short_name(cell.backbone)}" for cell in cells]
    assert [row[0] for row in found.tables[0].rows] == [names[0], names[0], names[1], names[1]]
    for place, name in enumerate(names):
        assert lines[place].startswith(f"{name}, seed 0, ")
        assert found.dots[place].title.endswith(f": {name}, seed 0")
        assert found.notes[place] == f"{name}, seed 0: a note"


def test_evaluations_of_several_backbones_are_told_apart(tmp_path: Path) -> None:
    names = [DEFAULT_BACKBONE, "other"]
    config = ExperimentConfig(train={"dataset": "d"}, backbones=names, twin=False)
    outcomes = [evaluated(tmp_path, Cell("d", name, OURS, 0, {})) for name in names]
    found = _written(config, tmp_path, Console(quiet=True), "Experiment", outcomes)
    wanted = [f"(d, {short_name(name)}, seed 0)" for name in names]
    assert found["summary"] == [f"The check of identity failed {name}." for name in wanted]
    assert list(found["parts"]) == ["Models", *(f"Input {name}" for name in wanted)]
