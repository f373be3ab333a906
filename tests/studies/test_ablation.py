"""The ablation: arms that differ by one term, at one budget, compared on the same rows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lexical_sae.studies.ablation import ARMS, FULL, TERMS, AblationConfig, _lines
from lexical_sae.studies.arms_table import Arm, arms_table, difference
from lexical_sae.studies.cells import Cell
from lexical_sae.studies.grid import Outcome
from lexical_sae.training.batch_size import LARGEST
from lexical_sae.training.combinations import terms_on
from lexical_sae.training.recipes import RECIPES
from tests.command_line import run
from tests.studies.conftest import StudyFiles


def test_each_arm_adds_one_term_and_all_have_one_budget() -> None:
    config = AblationConfig(train={"dataset": "sst2", "epochs": 3})
    found = {cell.arm: cell.config().settings for cell in config.cells()}
    assert list(found) == list(ARMS)
    for place, arm in enumerate(list(found)[: len(TERMS)]):
        on = [*terms_on(found[arm]), *(["guide"] if found[arm].guide else [])]
        assert sorted(on) == sorted(TERMS[:place])
    same = {"epochs": 3.0, "batch_size": LARGEST}
    assert found[FULL] == RECIPES["default"].model_copy(update=same)
    assert {s.batch_size for s in found.values()} == {LARGEST}
    assert {s.epochs for s in found.values()} == {3.0}
    assert {s.target_words for s in found.values()} == {RECIPES["default"].target_words}
    assert {s.early_stopping for s in found.values()} == {None}
    assert {s.sparsity.form for s in found.values() if s.sparsity} == {
        *("target_l1", "df_flops", "l1_l0", "gate"),
    }


def test_it_runs_and_leaves_its_files(files: StudyFiles, tmp_path: Path) -> None:
    file = files.write("ablation", compared=["cajt"], held_out_rows=30)
    shown, _ = run("run", file, "--output", tmp_path)
    assert "the full objective is right on" in shown
    found = json.loads((tmp_path / "results.json").read_text())
    assert [(cell["arm"], cell["seed"]) for cell in found["cells"]] == [("full", 0), ("cajt", 0)]
    table = found["parts"]["Ablation"]["tables"][0]
    assert table["columns"][:2] == ["arm", "seeds"]
    assert [row[:2] for row in table["rows"]] == [["full", 1], ["cajt", 1]]
    assert found["environment"]["versions"]["lexical_sae"]
    assert found["seeds"] == [0]
    figure = found["parts"]["Ablation"]["dots"][0]
    assert [dot["name"] for dot in figure["dots"]] == ["full", "cajt"]
    assert all(dot["found"]["low"] is not None for dot in figure["dots"])
    assert len(list((tmp_path / "figures").glob("ablation-on-*.svg"))) == 1
    assert "<figure" in (tmp_path / "report.html").read_text()
    for name in ("report.html", "tables.md", "tables.tex"):
        assert "Ablation" in (tmp_path / name).read_text()


def arm(name: str, *seeds: str, backbone: str = "b") -> Arm:
    accuracy = [one.count("1") / len(one) for one in seeds]
    found = {
        seed: Outcome(
            Cell("d", backbone, name, seed, {}), {"right": one, "accuracy": accuracy[seed]}
        )
        for seed, one in enumerate(seeds)
    }
    return Arm(name, "d", backbone, found, 0)


def test_differences_are_those_of_pairs() -> None:
    ours, theirs = arm("a", "1" * 40, "1" * 40), arm("b", "1" * 20 + "0" * 20)
    found = difference(ours, theirs)
    assert found is not None
    assert found.value == pytest.approx(0.5)
    assert 0.3 < found.low < 0.5 < found.high < 0.7
    assert found.p < 0.01
    same = difference(ours, ours)
    assert same is not None
    assert (same.value, same.p) == (0, 1)
    assert difference(ours, Arm("c", "d", "b", {}, 1)) is None


def test_a_lucky_seed_does_not_make_a_verdict() -> None:
    """On 100 rows the first seed is 20 points ahead, the second is not."""
    full, other = (
        arm(FULL, "1" * 80 + "0" * 20, "1" * 60 + "0" * 40),
        arm("cis", *["1" * 60 + "0" * 40] * 2),
    )
    found = difference(full, other)
    assert found is not None
    assert (found.value, found.seeds) == (pytest.approx(0.1), 2)
    assert found.p < 0.05
    assert found.low <= 0
    line = _lines([full, other])[1]
    assert line.startswith("d, cis: -10.0 points of accuracy (-")
    assert "over 2 seeds and rows; sign-flip test over rows: p 0.0005), which may be chance" in line
    once = _lines([arm(FULL, "1" * 80 + "0" * 20), arm("cis", "1" * 60 + "0" * 40)])[1]
    assert "over rows of one seed" in once
    assert "chance" not in once
    low, high = full.accuracy().low, full.accuracy().high
    assert low is not None
    assert high is not None
    rows_alone = arm(FULL, "1" * 70 + "0" * 30).accuracy()
    assert high - low > (rows_alone.high or 0) - (rows_alone.low or 0)


def test_of_several_backbones_every_line_names_its_own() -> None:
    arms = [arm(n, "1100", backbone=b) for b in ("wheel:one", "/here/two") for n in (FULL, "cis")]
    assert [line.split(":")[0] for line in _lines(arms)] == [
        *("d, one", "d, one, cis", "d, two", "d, two, cis"),
    ]


def test_an_arm_that_failed_has_a_row_that_says_so() -> None:
    table = arms_table("t", [arm("a", "10"), Arm("c", "d", "b", {}, 1)], "a")
    assert [row[:3] for row in table.rows] == [("a", 1, 50.0), ("c", 0, "failed")]
    assert all(len(row) == len(table.columns) for row in table.rows)


def tagger(name: str, right: list[int], tags: list[int], *, read: bool = True) -> Arm:
    whole = "".join("1" if a == b else "0" for a, b in zip(right, tags, strict=True))
    accuracy = sum(right) / sum(tags)
    found = {"right": "", "accuracy": accuracy, "f1": 0.5}
    if read:
        found |= {"right": whole, "tags_right": right, "tags": tags}
    return Arm(name, "d", "b", {0: Outcome(Cell("d", "b", name, 0, {}), found)}, 0)


def test_of_a_tagger_accuracy_and_difference_count_the_same_tags() -> None:
    tags = [2, 30] * 20
    ours, theirs = tagger("a", [2, 29] * 20, tags), tagger("b", [1, 29] * 20, tags)
    assert ours.accuracy().value == pytest.approx(31 / 32)
    found = difference(theirs, ours)
    assert found is not None
    gap = (theirs.accuracy().value or 0) - (ours.accuracy().value or 0)
    assert found.value == pytest.approx(gap)
    assert found.value == pytest.approx(-1 / 32)
    assert found.low <= found.value <= found.high < 0
    assert found.p < 0.01
    low, high = ours.accuracy().low, ours.accuracy().high
    assert low is not None
    assert high is not None
    assert low <= 31 / 32 <= high


def test_of_a_tagger_seeds_are_drawn_too() -> None:
    tags = [2, 30] * 20
    both = [tagger("a", right, tags).finished[0] for right in ([2, 29] * 20, [1, 20] * 20)]
    found = Arm("a", "d", "b", dict(enumerate(both)), 0).accuracy()
    assert found.value == pytest.approx((31 + 21) / 64)
    assert found.low is not None
    assert found.high is not None
    assert found.low < 22 / 32
    assert found.high > 30 / 32


def test_a_tagger_whose_sentences_were_not_read_is_not_compared() -> None:
    ours = tagger("a", [2, 3], [3, 3])
    twin = tagger("b", [2, 3], [3, 3], read=False)
    assert difference(ours, twin) is None
    assert twin.accuracy().value == pytest.approx(5 / 6)
    assert twin.accuracy().low is None
