"""Word in context: places of words, thresholds, routes against gold."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

from lexical_sae.evaluation.word_in_context import (
    ROUTES,
    against_routes,
    best_threshold,
    measure_word_in_context,
    states_of_pairs,
    word_pairs,
    word_span,
)
from lexical_sae.studies.files import load_study
from lexical_sae.text.registry import load_dataset
from tests.command_line import run
from tests.text.conftest import write_columns
from tests.tiny import TEXTS, tiny_model
from tests.training.small import save_backbone


def write_pairs(folder: Path) -> Path:
    """Pairs about "film", the same sense if the texts are the same."""
    texts = [text for text in TEXTS if text.startswith("the film")]
    for split in ("train", "validation", "test"):
        rows = [(texts[i], texts[i if i % 2 else i - 1]) for i in range(len(texts))]
        write_columns(
            folder / f"{split}.csv",
            {
                "word": ["film"] * len(rows),
                "index1": [1] * len(rows),
                "index2": [1] * len(rows),
                "sentence1": [one for one, _ in rows],
                "sentence2": [two for _, two in rows],
                "label_name": ["T" if one == two else "F" for one, two in rows],
            },
        )
    return folder


def test_words_are_found_in_their_sentences() -> None:
    assert word_span("He 's a  man , a man .", 6) == (17, 20)
    with pytest.raises(ValueError, match="has no word number 9"):
        word_span("too short", 9)


def test_the_threshold_with_the_fewest_mistakes() -> None:
    score = torch.tensor([0.1, 0.9, 0.2, 0.8, 0.3])
    threshold = best_threshold(score, np.array([False, True, False, True, True]))
    assert 0.2 < threshold < 0.3
    assert best_threshold(score, np.ones(5, dtype=bool)) < 0.1
    assert best_threshold(score, np.zeros(5, dtype=bool)) > 0.9


def test_routes_are_compared_with_gold(tmp_path: Path) -> None:
    data = load_dataset(
        write_pairs(tmp_path), "test", text_column="sentence1", label_column="label_name"
    )
    pairs = word_pairs(data)
    assert pairs[1].same
    assert not pairs[0].same
    model = tiny_model("bert")
    plain = measure_word_in_context(model, pairs, pairs)
    assert plain.covered == 0
    always = plain.all_pairs["no senses: always the same"].value
    assert plain.all_pairs["routes of the senses"].value == always
    assert plain.covered_against == {}
    assert plain.all_against["no senses: always the same"].p == 1
    model.expand(TEXTS, ["film"], senses=2)
    one, two = states_of_pairs(model, pairs)
    same = torch.tensor([pair.same for pair in pairs])
    torch.testing.assert_close(one[same], two[same], rtol=1e-4, atol=1e-4)
    found = measure_word_in_context(model, pairs, pairs)
    assert found.covered == len(pairs)
    assert found.words == 1
    hidden = found.all_pairs["cosine of hidden states"].value
    assert hidden is not None
    assert hidden > 0.9  # the same sentence twice, against two others
    routes = found.covered_pairs["routes of the senses"].value
    assert routes is not None
    assert routes >= (always or 0)  # twice the same state is never told apart
    assert list(found.covered_against) == list(found.covered_pairs)[1:]
    for name, apart in found.covered_against.items():
        other = found.covered_pairs[name].value
        assert other is not None
        assert apart.value == pytest.approx(routes - other)
        assert apart.low <= apart.value <= apart.high
    with pytest.raises(ValueError, match="has no word, index1"):
        word_pairs(data.__class__("x", "test", "classification", ("F", "T")))


def test_routes_that_are_right_more_often_are_so_beyond_chance() -> None:
    right = {ROUTES: np.arange(200) < 150, "always": np.arange(200) < 100}
    found = against_routes(right, np.ones(200, dtype=bool), 0)["always"]
    assert (found.value, found.may_be_chance) == (0.25, False)
    some = against_routes(right, np.arange(200) < 102, 0)["always"]
    assert some.value == pytest.approx(2 / 102)
    assert some.may_be_chance


def test_the_study(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    texts = tmp_path / "texts"
    texts.mkdir()
    rows = {"text": TEXTS, "label": ["a" if i % 2 else "b" for i in range(len(TEXTS))]}
    write_columns(texts / "train.csv", rows)
    study = {
        "study": "wic",
        "pairs": str(write_pairs(data)),
        "backbone": str(save_backbone(tmp_path / "backbone")),
        "contexts": {str(texts): 100},
        "fewest": 4,
    }
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(study), encoding="utf-8")
    shown, _ = run("run", tmp_path / "study.yaml", "--output", tmp_path / "out")
    assert "test pairs whose word has senses" in shown
    found = json.loads((tmp_path / "out" / "results.json").read_text())
    assert found["word_in_context"]["test"]["covered"] > 0
    against = found["word_in_context"]["test"]["covered_against"]
    assert set(against["cosine of hidden states"]) == {"value", "low", "high", "p", "seeds"}
    told = found["summary"][1]
    assert told.startswith("On these pairs the routes are, pair by pair: against no senses")
    assert told.count("points (") == 3
    tables = found["parts"]["Same sense or not"]["tables"]
    assert [table["title"] for table in tables[1::2]] == [
        f"{split}: the routes against the others" for split in ("validation", "test")
    ]
    assert [row[0] for row in tables[1]["rows"]] == list(against)
    assert (found["schema"], found["seeds"]) == (1, [0])
    assert (tmp_path / "out" / "report.html").is_file()


def test_the_experiment_is_whole() -> None:
    config = load_study(Path("experiments") / "senses.yaml")
    assert config.study == "wic"  # type: ignore[attr-defined]
