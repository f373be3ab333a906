"""The long-context study end to end on small data, and its parts."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml

from lexical_sae.attribution.explanation import Explanation, Place, VocabularyWord
from lexical_sae.evaluation.dense_states import dense_states, dense_window_logits
from lexical_sae.model.dense_twin import DenseTwin
from lexical_sae.studies.files import load_study
from lexical_sae.studies.long_context_config import LongContextConfig
from lexical_sae.studies.long_context_findings import Measured
from lexical_sae.studies.long_context_reading import (
    ARMS,
    Decisions,
    by_needle,
    most_certain,
    pointing,
)
from lexical_sae.studies.needles import alone, choose_needles, haystacks, only_hay
from lexical_sae.studies.neutral_text import LISTS, TEMPLATES
from lexical_sae.studies.repeated import Numbers, over_seeds
from lexical_sae.training.batch_size import LARGEST
from tests.command_line import run
from tests.text.conftest import write_columns
from tests.training.small import save_backbone, small_dataset


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    (folder / "data").mkdir()
    save_backbone(folder / "backbone")
    for split, rows, seed in (("train", 64, 0), ("validation", 20, 1), ("test", 60, 2)):
        found = small_dataset(rows, seed)
        names = [found.label_names[label] for label in found.labels]
        write_columns(folder / "data" / f"{split}.csv", {"text": found.texts, "label": names})
    return folder


def write(folder: Path, **changes: Any) -> Path:
    train = {
        **{"dataset": str(folder / "data"), "backbone": str(folder / "backbone"), "epochs": 1},
        **{"batch_size": 8, "target_words": 6, "start_words": 16, "learning_rate": 3e-3},
        **{"dictionary_rate_factor": 1, "anchor": None, "max_length": 64},
    }
    study = {"study": "long_context", "train": train, "lengths": [40, 90], "places": [0, 1]}
    study |= {"needles": 4, "fillers": 2, **changes}
    file = folder / f"study{len(list(folder.glob('study*.yaml')))}.yaml"
    file.write_text(yaml.safe_dump(study), encoding="utf-8")
    return file


def test_several_seeds_stand_in_one_report(folder: Path, tmp_path: Path) -> None:
    out, file = tmp_path / "out", write(folder, lengths=[40], places=[0])
    shown, _ = run("run", file, "--output", out, "--seeds", 2)
    assert "[2/2] seed 1" in shown
    found = json.loads((out / "results.json").read_text())
    each = [json.loads((out / f"seed{seed}" / "results.json").read_text()) for seed in (0, 1)]
    assert found["seeds"] == [0, 1]
    assert [one["seeds"] for one in each] == [[0], [1]]
    assert [one["config"]["train"]["seed"] for one in each] == [0, 1]
    assert [one["summary"] for one in found["runs"]] == [one["summary"] for one in each]
    table = found["parts"]["Seeds"]["tables"][0]
    row = next(row for row in table["rows"] if row[:2] == [40, "ours, windows"])
    single = [100 * one["lengths"][1]["accuracy"]["ours, windows"]["value"] for one in each]
    assert row[2:5] == pytest.approx([sum(single) / 2, min(single), max(single)])
    assert any(line.startswith("40, ours, windows: accuracy") for line in found["summary"])
    assert (out / "report.html").is_file()
    assert len(list((out / "figures").iterdir())) == 2
    page = (out / "report.html").read_text()
    assert "Bars go from the least to the most of single seeds." in page
    assert "95 % intervals" not in page
    shown, _ = run("run", file, "--output", out, "--seeds", 2)
    assert shown.count("is trained already") == 4
    _, error = run("run", file, "--seeds", 2, "--set", "train.seed=3", code=2)
    assert "seeds: 2 and train.seed: 3 are given; expected seeds alone" in error


def test_what_one_seed_lacks_is_left_out_of_the_mean() -> None:
    every: list[Numbers] = [{("a",): {"x": 1.0, "y": None}}, {("a",): {"x": 3.0}, ("b",): {"y": 5}}]
    found = over_seeds(every)
    assert (found[("a",)]["x"].value, found[("a",)]["x"].low, found[("a",)]["x"].high) == (2, 1, 3)
    assert found[("a",)]["y"].value is None
    assert found[("b",)]["y"].value == 5


def test_the_whole_study(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shown, _ = run("run", write(folder), "--output", out)
    assert "Needles alone: ours, windows" in shown
    found = json.loads((out / "results.json").read_text())
    assert (found["schema"], found["study"], found["seeds"]) == (1, "long_context", [0])
    assert list(found["parts"]) == ["Length", "Reasons", "Place", "Filler"]
    assert found["parts"]["Length"]["tables"][0]["title"] == "Accuracy by length"
    assert [one["words"] for one in found["lengths"]] == [0, 40, 90]
    assert [one["texts"] for one in found["lengths"]] == [4, 8, 8]
    bare = found["lengths"][0]
    assert set(bare["accuracy"]) == set(ARMS)
    assert bare["accuracy"]["ours, windows"] == bare["accuracy"]["ours, cut"]
    assert bare["accuracy"]["twin, mean over windows"] == bare["accuracy"]["twin, cut"]
    assert bare["needle_share"]["value"] == pytest.approx(1)
    assert bare["top_in_needle"]["value"] == 1.0
    assert bare["above_filler"]["ours, cut"]["value"] is None
    assert found["lengths"][2]["above_filler"]["ours, cut"]["value"] is not None
    assert sum(found["filler"]["90"]["ours, cut"].values()) == 2
    assert set(found["lengths"][2]["places"]) == {"0.0", "1.0"}
    end = found["lengths"][2]["places"]["1.0"]
    assert (end["texts"], end["place"]) == (4, 1.0)
    page = (out / "report.html").read_text()
    assert "Accuracy against length" in page
    assert "Filler without a needle" in (out / "tables.md").read_text()
    assert "is trained already" in run("run", write(folder), "--output", out)[0]
    shown, _ = run("run", write(folder), "--output", out, "--dry-run")
    assert "2 runs, 2 of them finished" in shown
    twin = DenseTwin.from_pretrained(out / "twin" / "model")
    texts = ["the film is lovely", only_hay(60, 1, 0)[0]]
    each = dense_window_logits(twin, texts)
    torch.testing.assert_close(each[0], twin.head(dense_states(twin, texts[:1])))
    torch.testing.assert_close(each[1][0], twin.head(dense_states(twin, texts))[1])
    assert len(each[1]) > 1


def test_needles_come_from_validation_where_there_is_no_test_split(
    folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    for split in ("train", "validation"):
        shutil.copy(folder / "data" / f"{split}.csv", tmp_path / "data")
    where = ["--set", f"train.dataset={tmp_path / 'data'}", "--set", "train.batch_size=null"]
    small = ["--set", "lengths=[40]", "--set", "train_rows=32"]
    run("run", write(folder), "--output", tmp_path / "out", *where, *small)
    found = json.loads((tmp_path / "out" / "results.json").read_text())
    assert found["identity"]["task"].endswith(", validation split")
    each = [
        json.loads((tmp_path / "out" / n / "metrics.json").read_text()) for n in ("ours", "twin")
    ]
    assert [one["batch_size"] for one in each] == [LARGEST, LARGEST]
    assert each[0]["rows"]["train"] == 32


def test_haystacks_hold_their_needle_where_they_say() -> None:
    needles = choose_needles(small_dataset(60, 3), 6, 20, 0)
    assert sorted(needles.labels) == [0, 0, 0, 1, 1, 1]
    made = haystacks(needles, 120, [0.0, 0.5, 1.0], 0)
    assert made == haystacks(needles, 120, [0.0, 0.5, 1.0], 0)
    for one in made:
        assert one.text[one.start : one.end] == needles.texts[one.needle]
        assert 120 <= len(one.text.split()) < 140
        assert one.place != 0.0 or one.start == 0
        assert one.place != 1.0 or one.end == len(one.text)
    hay = {one.text.replace(needles.texts[0], "").split()[0] for one in made if one.needle == 0}
    assert len(hay) == 1  # the same sentences, whatever the place
    assert all(one.needle_words == 1.0 for one in alone(needles))


def test_no_text_counts_for_two_places() -> None:
    needles = choose_needles(small_dataset(60, 3), 20, 20, 0)
    places = [0.0, 0.25, 0.5, 0.75, 1.0]
    made = haystacks(needles, 30, places, 0)
    assert len({one.text for one in made}) == len(made) < 5 * len(needles)
    for one in made:
        before = len(one.text[: one.start].split())
        filler = len(one.text.split()) - len(needles.texts[one.needle].split())
        assert one.place == pytest.approx(before / filler)
    said = Decisions({ARMS[0]: np.zeros((len(made), 2))}, {}, np.zeros(0, np.int64), ())
    assert len({(one.needle, one.asked) for one in made}) == len(made)
    found = Measured(30, tuple(made), said, None, ())
    texts = [found.standing(place)[0] for place in (*places, 0.3)]
    assert (sum(texts), texts[-1]) == (len(made), 0)
    assert found.accuracy(ARMS[0], 0, 0.3).value is None


def test_filler_fills_every_template() -> None:
    text = " ".join(only_hay(3000, 1, 0))
    assert "{" not in text
    assert len({template.split("{")[0] for template in TEMPLATES}) > 8
    assert all(len(set(choices)) == len(choices) > 2 for choices in LISTS.values())


def test_pointing() -> None:
    def word(contribution: float, start: int) -> VocabularyWord:
        return VocabularyWord("w", contribution, 1.0, Place("w", start, start + 1), 0)

    hay = haystacks(choose_needles(small_dataset(60, 3), 2, 20, 0), 60, [1.0], 0)[0]
    told = Explanation(
        **{"text": hay.text, "label": "a", "against": None, "predicted": "a", "logit": 1.0},
        **{"probabilities": {}, "bias": 0.0, "words": (), "spans": (), "truncated": False},
        **{"method": "contributions", "model_hash": "", "dictionary_hash": ""},
        vocabulary=(word(-4, 0), word(3, hay.start), word(1, 0)),
    )
    assert pointing(told, hay).share == 0.75
    assert pointing(told, hay).top == 1.0
    nothing = pointing(replace(told, vocabulary=()), hay)
    assert np.isnan(nothing.share)
    assert by_needle([1.0, float("nan")], [hay, hay]).tolist() == [1.0]
    assert most_certain(torch.tensor([[0.0, 0.5], [3.0, 0.0], [0.0, 1.0]])).tolist() == [3.0, 0.0]


def test_a_leaning_of_the_filler_can_be_taken_off() -> None:
    def said(*logits: list[float]) -> Decisions:
        return Decisions({ARMS[0]: np.array(logits)}, {}, np.zeros(0, np.int64), ())

    found, filler = said([3.0, 2.5], [3.0, 0.5]), said([2.0, 0.0], [2.0, 1.0])
    assert found.predicted(ARMS[0]).tolist() == [0, 0]
    assert found.predicted(ARMS[0], filler).tolist() == [1, 0]


def made_up(needles: int, fillers: int) -> tuple[Measured, Decisions]:
    """Two arms on needles with two places each, near the border that the filler sets."""
    draw = np.random.default_rng(7)
    chosen = choose_needles(small_dataset(60, 3), needles, 20, 0)
    hay = haystacks(chosen, 120, [0.0, 1.0], 0)

    def said(rows: int) -> Decisions:
        logits = {arm: draw.normal(size=(rows, 2)) for arm in ARMS[:2]}
        return Decisions(logits, {}, np.zeros(0, np.int64), ())

    filler = said(fillers)
    return Measured(120, tuple(hay), said(len(hay)), filler, ()), filler


def slow_draws(found: Measured, filler: Decisions, arm: str) -> list[list[float]]:
    """Every needle with every drawn set of filler texts."""
    fillers, texts = filler.logits[arm], found.decisions.logits[arm]
    draws = []
    for chosen in np.random.default_rng([5, 1]).integers(0, len(fillers), (2000, len(fillers))):
        mean = sum(fillers[i] for i in chosen) / len(fillers)
        right: dict[int, list[bool]] = {}
        for one, logits in zip(found.hay, texts, strict=True):
            right.setdefault(one.needle, []).append(int(np.argmax(logits - mean)) == one.label)
        draws.append([sum(each) / len(each) for _, each in sorted(right.items())])
    return draws


def test_above_filler_the_filler_is_drawn_too() -> None:
    found, filler = made_up(needles=6, fillers=5)
    slow = [slow_draws(found, filler, arm) for arm in ARMS[:2]]
    apart = (np.array(slow[0]) - np.array(slow[1])).tolist()
    for draws, estimate in (
        (slow[0], found.above_filler(ARMS[0], 5)),
        (apart, found.ahead(*ARMS[:2], 5, filler)),
    ):
        draw, means = np.random.default_rng(5), []
        for row in draws:
            picked = draw.integers(0, len(row), len(row))
            means.append(sum(row[i] for i in picked) / len(row))
        assert [estimate.low, estimate.high] == pytest.approx(np.quantile(means, [0.025, 0.975]))
        assert estimate.low is not None
        assert estimate.value is not None
        assert estimate.high is not None
        assert estimate.low <= estimate.value <= estimate.high


def test_filler_that_hangs_in_the_balance_leaves_needles_open() -> None:
    """One half of the filler leans one way and the other half the other. Together nothing is taken
    off and every needle is found, so over needles alone there would be no doubt; but whichever half
    has the most draws turns all needles of a class."""
    hay = haystacks(choose_needles(small_dataset(60, 3), 8, 20, 0), 120, [0.0], 0)
    label = np.array([one.label for one in hay])
    logits = np.eye(2)[label] - 0.5  # towards the right label
    fillers = np.array([[9.0, -9.0], [-9.0, 9.0]] * 10)
    said, filler = (
        Decisions({ARMS[0]: each}, {}, np.zeros(0, np.int64), ()) for each in (logits, fillers)
    )
    found = Measured(120, tuple(hay), said, filler, ()).above_filler(ARMS[0], 0)
    assert (found.value, found.high) == (1.0, 1.0)
    assert found.low is not None
    assert found.low < 0.8


def test_quick_and_the_experiment(folder: Path) -> None:
    file = Path("experiments") / "long-context.yaml"
    whole, small = load_study(file), load_study(file, quick=True)
    assert isinstance(whole, LongContextConfig)
    assert isinstance(small, LongContextConfig)
    assert max(whole.lengths) == 4000
    assert small.needles < whole.needles
    assert small.train["dataset"] == whole.train["dataset"]
    _, error = run("run", write(folder), "--quick", code=2)
    assert "has no quick part; expected quick: with smaller settings" in error


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lengths": [90, 90]}, "lengths: found [90, 90]; expected one or more numbers, each once"),
        ({"places": [2]}, "places.0 is 2; expected a number of at least 0 and at most 1."),
        ({"train": {"epoch": 3}}, "'epoch' in train is no setting; did you mean 'epochs'?"),
        ({"train": {"dense_twin": True}}, "train.dense_twin is given; both are trained"),
        ({"needle": 3}, "unknown key 'needle'; did you mean 'needles'?"),
        ({"needles": 400}, "and 200 are wanted; lower needles or raise the shortest of lengths"),
    ],
)
def test_bad_files(folder: Path, tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    _, error = run("run", write(folder, **changes), "--output", tmp_path / "x", code=2)
    assert message in error
    assert len(error.strip().splitlines()) == 1
    assert not (tmp_path / "x").exists()
