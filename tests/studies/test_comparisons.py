"""Explainers and systems side by side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from lexical_sae.evaluation.compared import Contest, ahead_line
from lexical_sae.evaluation.explainers import AT_INPUT, AT_OPEN_WORDS, OF_TWIN
from lexical_sae.evaluation.perturbation import falling, limits, removal
from lexical_sae.evaluation.sparse_autoencoder import Kind, SparseAutoencoder
from lexical_sae.model.dense_twin import DenseTwin, DenseTwinConfig
from lexical_sae.report.finding import FindingTable
from lexical_sae.studies import (
    autoencoder_baseline,
    faithfulness,
    setfit_baseline,
    sota_comparison,
    systems,
)
from lexical_sae.studies.additive_text import AdditiveText, judged_texts
from lexical_sae.studies.autoencoder_baseline import FeatureText
from lexical_sae.studies.cells import Cell
from lexical_sae.studies.experiment import OURS
from lexical_sae.studies.grid import Outcome
from lexical_sae.studies.linear_baseline import LinearModel, LinearText, linear_baseline
from lexical_sae.studies.setfit_baseline import missing_setfit
from lexical_sae.studies.systems import System
from lexical_sae.studies.systems_table import means_table, system_lines, systems_table
from tests.command_line import run
from tests.studies.conftest import StudyFiles, fail_twins
from tests.tiny import tiny_backbone
from tests.training.small import small_dataset


def test_faithfulness_of_explainers(files: StudyFiles, tmp_path: Path) -> None:
    file = files.write("faithfulness", peer_texts=1, held_out_rows=10)
    run("run", file, "--output", tmp_path)
    found = json.loads((tmp_path / "results.json").read_text())
    tables = {table["title"]: table for table in found["parts"]["Explainers"]["tables"]}
    for place in (AT_OPEN_WORDS, AT_INPUT, OF_TWIN):
        names = {row[2].split(" (the same")[0] for row in tables[place]["rows"]}
        assert {"LIME", "SHAP", "random"} <= names
        removed = tables[f"{place}, without their top 5 words"]
        assert removed["columns"][4] == "decisions flipped, %"
        assert all(0 <= row[4] <= 100 for row in removed["rows"])
        assert {row[2] for row in removed["rows"]} == names

    assert not any("is first" in line for line in found["summary"])
    compared = [line for line in found["summary"] if "on the texts of both" in line]
    assert len(compared) == 3
    notes = found["parts"]["Explainers"]["notes"]
    assert any("p by paired sign flips" in note for note in notes)
    assert any("Of the dense twin: " in note for note in notes)
    assert len(found["parts"]["Explainers"]["dots"]) == 3
    assert len(list((tmp_path / "figures").glob("*.svg"))) == 3


def test_tables_whose_columns_differ_are_not_joined() -> None:
    """NAOPC between limits and NAOPC of the orders tried are not the same number."""
    cells = [Cell(name, "b", OURS, 0, {}) for name in ("short", "brief", "long")]
    known = {}
    for cell, column in zip(cells, ("NAOPC", "NAOPC", "NAOPC of the orders tried"), strict=True):
        table = FindingTable("t", ("explainer", column), (("ours", 0.5),))
        known[Outcome(cell, {})] = (cell.dataset, 0, table)
    first, second = faithfulness._joined("Explainers", known)
    assert first.title == "Explainers: short, brief"
    assert first.rows == (("short", 0, "ours", 0.5), ("brief", 0, "ours", 0.5))
    assert second.title == "Explainers: long"
    assert second.columns == ("dataset", "seed", "explainer", "NAOPC of the orders tried")


def test_who_is_ahead_is_told_from_the_texts_of_both() -> None:
    """LIME explained one text, on which ours does better; its own mean is higher all the same."""
    contest = Contest("ours")
    contest.naopc = {"ours": [0.9, 0.1, 0.1], "LIME": [0.8], "SHAP": [0.95]}
    everything: dict[str, list[float | None]] = {name: [1.0] for name in contest.naopc}
    contest.comprehensiveness = contest.sufficiency = contest.seconds = everything
    table = contest.table("t")
    assert [row[0] for row in table.rows] == ["SHAP", "LIME", "ours"]
    line = ahead_line(table)
    assert line.startswith("ahead of ours in mean NAOPC on the texts of both: SHAP (by 0.05")
    assert "LIME" not in line
    assert set(contest.ahead()) == {"SHAP"}
    contest.naopc = {"ours": [None], "LIME": [None]}
    assert "is undefined" in ahead_line(contest.table("t"))
    contest.naopc = {"ours": [0.5], "LIME": [0.4]}
    assert ahead_line(contest.table("t")).startswith("none is ahead of ours")


def test_systems(files: StudyFiles, tmp_path: Path) -> None:
    file = files.write("sota_comparison", peer_texts=6, held_out_rows=12, seeds=2, setfit_steps=2)
    shown, _ = run("run", file, "--output", tmp_path)
    if missing_setfit():
        assert "SetFit is not installed" in shown
    found = json.loads((tmp_path / "results.json").read_text())
    means, table, _ = found["parts"]["Systems"]["tables"]
    rows = {row[0]: dict(zip(table["columns"], row, strict=True)) for row in table["rows"]}
    assert {"ours, contributions", "linear on TF-IDF", "dense twin, LIME"} <= set(rows)
    assert {"dense twin, SHAP", "dense twin, captum Integrated Gradients"} <= set(rows)
    assert any("(SAE)" in name for name in rows)
    for name, row in rows.items():
        assert 0 <= row["accuracy, %"] <= 100, name
    saes = [name for name in rows if "(SAE)" in name]
    assert saes == ["TopK on the twin (SAE)", "JumpReLU on the twin (SAE)"]
    for name in saes:
        for column in ("from", "to", "p against ours", "ms to predict"):
            assert rows[name][column] is not None, (name, column)
        assert rows[name]["seconds to train"] > rows["dense twin, LIME"]["seconds to train"]
    assert means["title"].endswith("means over 2 seeds")
    over = {row[0]: dict(zip(means["columns"], row, strict=True)) for row in means["rows"]}
    assert list(over) == list(rows)
    for name, row in over.items():
        assert row["seeds"] == 2
        assert row["from"] <= row["accuracy, %"] <= row["to"], name
        assert row["between seeds"] is not None
    figure = found["parts"]["Systems"]["dots"][0]
    names = [dot["name"] for dot in figure["dots"]]
    assert names == ["ours", "dense twin", *saes, "linear on TF-IDF", "SetFit"][: len(names)]
    for name in ("ours, contributions", "linear on TF-IDF", "dense twin, LIME", *saes):
        for column in ("NAOPC", "comprehensiveness", "seconds to train", "ms to explain"):
            assert rows[name][column] is not None, (name, column)


def made_up(ours: str, linear: str) -> list[System]:
    numbers = (9.0, 0.5, *(None,) * 5, 2.0)
    return [System("ours, contributions", ours, numbers), System("linear", linear, numbers)]


def test_means_of_systems_are_told_with_what_seeds_leave_open() -> None:
    """The first seed is 20 points ahead of the linear model, the second is not."""
    same = "1" * 60 + "0" * 40
    runs = [made_up("1" * 80 + "0" * 20, same), made_up(same, same)]
    table = means_table("d: means over 2 seeds", runs)
    row = dict(zip(table.columns, table.rows[1], strict=True))
    assert row["minus ours"] == pytest.approx(-10)
    assert row["to "] == pytest.approx(0)
    assert row["p against ours"] < 0.05
    lines = system_lines(table)
    assert lines[0] == "d: means over 2 seeds: ours is right on 70.0 % with 9 words."
    assert lines[1].startswith("linear: -10.0 points (-")
    assert "p 0.0005 over rows), which may be chance, 2 ms to explain against 2." in lines[1]
    alone = system_lines(systems_table("d, seed 0", runs[0]))
    assert "chance" not in alone[1]
    ours, width = dict(zip(table.columns, table.rows[0], strict=True)), 100 * 0.0458 * 3.92
    assert ours["to"] - ours["from"] > 1.2 * width  # of 100 rows that are right 7 times of 10


def test_only_explainers_of_the_same_words_are_compared_by_naopc() -> None:
    ours, linear = made_up("1100", "1110")
    lime = System("dense twin, LIME", "1100", (None, 0.75, *(None,) * 5, 1094.1))
    lines = system_lines(systems_table("d, seed 0", [ours, lime, linear]))
    assert lines[1].endswith("NAOPC 0.75 against 0.50, 1,094 ms to explain against 2.")
    assert "NAOPC" not in lines[2]


def test_systems_of_several_backbones_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(systems, "systems_of", lambda pair, folder: made_up("1100", "1110"))
    cells = [Cell("d", name, OURS, n, {}) for name in ("wheel:one", "two") for n in (0, 1)]
    pairs = [(Outcome(cell, {}), Outcome(cell, {})) for cell in cells]
    found, lines = sota_comparison._compared(pairs, tmp_path)
    assert [table.title for table in found.tables] == [
        *("d, one: means over 2 seeds", "d, two: means over 2 seeds"),
        *("d, one, seed 0", "d, one, seed 1", "d, two, seed 0", "d, two, seed 1"),
    ]
    assert [plot.title for plot in found.dots] == ["Systems on d, one", "Systems on d, two"]
    told = [line for line in lines if "ours is right" in line]
    assert [line.split(":")[0] for line in told] == ["d, one", "d, two"]


def test_trouble_in_setfit_is_told_and_fails_nothing(
    files: StudyFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*arguments: object) -> None:
        raise RuntimeError("no such backend")

    monkeypatch.setattr(setfit_baseline, "missing_setfit", lambda: "")
    monkeypatch.setattr(setfit_baseline, "setfit_baseline", broken)
    monkeypatch.setattr(sota_comparison, "STEPS", ("task",))
    fitted: list[int] = []
    really = autoencoder_baseline.fit_autoencoder

    def fit(states: Tensor, kind: Kind, **options: Any) -> SparseAutoencoder:
        fitted.append(len(states))
        return really(states, kind, **options)

    monkeypatch.setattr(autoencoder_baseline, "fit_autoencoder", fit)
    file = files.write("sota_comparison", peer_texts=1, held_out_rows=12, fitted_rows=64)
    shown, _ = run("run", file, "--output", tmp_path)
    assert "SetFit failed" in shown
    assert "RuntimeError: no such backend" in shown
    assert "linear on TF-IDF" in shown
    assert fitted == [64, 64]  # of 96 training texts


def test_a_failed_twin_fails_the_comparison_with_a_sentence(
    files: StudyFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_twins(monkeypatch)
    shown, _ = run("run", files.write("sota_comparison"), "--output", tmp_path, code=1)
    assert "The dense twin of this run has not been trained" in shown


def test_the_linear_model_is_what_scikit_learn_says() -> None:
    train, test = small_dataset(80, 0), small_dataset(30, 1)
    model = LinearModel(train)
    x = model.features(test.texts)
    expected = model.model.predict_proba(x)
    for i in range(len(test)):
        text = LinearText(model, x[i])
        everything = np.ones((1, text.n), dtype=np.bool_)
        assert text.label == expected[i].argmax()
        assert text(everything)[0] == pytest.approx(expected[i].max())
        assert text.keeps(everything)[0]
    found = linear_baseline(train, test, [0, 1, 2])
    assert set(found["right"]) <= {"0", "1"}
    assert len(found["right"]) == 30
    assert found["right"].count("1") >= 28  # one word decides
    assert found["tables"][0]["rows"][0][0] == "weights × values"


def test_a_sum_over_features_is_judged_by_all_orders_not_by_those_tried() -> None:
    """With four classes the order of the contributions need not be the best, and says so."""
    draw = np.random.default_rng(3)
    texts = [AdditiveText(2 * draw.standard_normal((4, 6)), np.zeros(4)) for _ in range(20)]
    judged = judged_texts("parts", enumerate(texts), seed=0)[0]
    assert judged["columns"][2] == "NAOPC"
    best = []
    for text in texts:
        between = limits(text, 6)
        aopc = removal(text, falling(text.contributions())).aopc
        best.append(between.normalised(aopc))
    found = next(row for row in judged["rows"] if row[0] == "parts")
    assert found[2] == pytest.approx(np.mean(best))
    assert found[2] < 1.0


def test_the_sum_over_features_is_what_the_twin_says_of_the_restored_state() -> None:
    torch.manual_seed(0)
    twin = DenseTwin(
        DenseTwinConfig(["a", "b", "c"], backbone=tiny_backbone("bert").config.to_dict())
    )
    size = twin.head.in_features
    model = SparseAutoencoder("topk", size, 40, 5)
    states = torch.randn(3, size)
    for state in states:
        text = FeatureText(model, twin, state)
        assert text.n == 5
        expected = twin.head(model(state[None])[0]).detach().numpy()[0]
        assert text.parts.sum(1) + text.bias == pytest.approx(expected, abs=1e-5)
        assert text.label == expected.argmax()
