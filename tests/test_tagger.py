"""LexicalTagger: fit, predict, explain, save, load."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from lexical_sae import LexicalClassifier, LexicalTagger
from lexical_sae.evaluation.held_out import evaluate_model
from lexical_sae.training.fit import fit
from tests.tagged import TAGS, tagged_dataset
from tests.training.small import save_backbone, small_config

DATA = tagged_dataset(120)
NAMES = [[TAGS[tag] for tag in tags] for tags in DATA.tags]
# this backbone is not pretrained: its words mean nothing that would be worth keeping
FREE = {"dictionary_rate_factor": 1, "anchor": None}


@pytest.fixture(scope="module")
def backbone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_backbone(tmp_path_factory.mktemp("backbone"))


def tagger(backbone: Path, **changes: Any) -> LexicalTagger:
    chosen: dict[str, Any] = {
        "backbone": str(backbone),
        "epochs": 6,
        "batch_size": 8,
        "target_words": 4,
        "learning_rate": 3e-3,
        "settings": {"start_words": 16, **FREE},
    }
    return LexicalTagger(**{**chosen, **changes})


@pytest.fixture(scope="module")
def fitted(backbone: Path) -> LexicalTagger:
    return tagger(backbone).fit(DATA.tokens, NAMES)


def test_it_learns_entities(fitted: LexicalTagger) -> None:
    new = tagged_dataset(40, seed=5)
    assert fitted.score(new.tokens, [[TAGS[tag] for tag in tags] for tags in new.tags]) > 0.9
    assert fitted.predict([["the", "old", "house", "is", "dull", "."]]) == [
        ["O", "B-ART", "I-ART", "O", "B-MOOD", "O"]
    ]
    (entities,) = fitted.predict_entities(["the film is very funny."])
    assert [(e.text, e.start, e.end, e.type) for e in entities] == [
        ("film", 4, 8, "ART"),
        ("very funny", 12, 22, "MOOD"),
    ]
    assert fitted.classes_ == list(TAGS)


def test_save_and_load_give_the_same_tags_and_sums(fitted: LexicalTagger, tmp_path: Path) -> None:
    fitted.save(tmp_path / "tagger")
    loaded = LexicalTagger.load(tmp_path / "tagger")
    assert loaded.get_params() == fitted.get_params()
    some = DATA.tokens[:10]
    assert loaded.predict(some) == fitted.predict(some)
    assert loaded.explain(some[0]).to_dict() == fitted.explain(some[0]).to_dict()
    with pytest.raises(ValueError, match="is for tagging; LexicalClassifier loads"):
        LexicalClassifier.load(tmp_path / "tagger")


def test_other_schemes_are_converted(backbone: Path) -> None:
    single = {"B-ART": "U-ART", "B-MOOD": "U-MOOD"}
    bilou = []
    for tags in NAMES[:30]:
        row = list(tags)
        for i, tag in enumerate(tags):
            goes_on = i + 1 < len(tags) and tags[i + 1].startswith("I-")
            if tag.startswith("B-") and not goes_on:
                row[i] = single[tag]
            elif tag.startswith("I-") and not goes_on:
                row[i] = "L-" + tag[2:]
        bilou.append(row)
    with pytest.warns(UserWarning, match="The tags are BILOU; they were converted to IOB2"):
        found = tagger(backbone, epochs=1).fit(DATA.tokens[:30], bilou)
    assert found.classes_ == list(TAGS)


def test_it_is_cloned_and_refuses_what_does_not_fit(backbone: Path) -> None:
    fresh = clone(tagger(backbone))
    with pytest.raises(NotFittedError, match="call fit or load"):
        fresh.predict(DATA.tokens[:1])
    with pytest.raises(ValueError, match="1 lists of tags for 2 sentences"):
        fresh.fit(DATA.tokens[:2], NAMES[:1])
    for row in (0, 2, 11):  # the latter two would be held out
        with pytest.raises(ValueError, match=f"row {row + 1}: .* tokens but 1 tags"):
            fresh.fit(DATA.tokens[:30], [*NAMES[:row], ["O"], *NAMES[row + 1 : 30]])
    with pytest.raises(ValueError, match="X\\[0\\] is 'the film'; expected a list of words"):
        fresh.fit(["the film"], [["O", "O"]])
    with pytest.raises(ValueError, match="y\\[0\\] is \\[0, 1\\]"):
        fresh.fit([["the", "film"]], [[0, 1]])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="the tag 'X'"):
        fresh.fit(DATA.tokens[:2], [["X"] * len(DATA.tokens[0]), NAMES[1]])
    wrong = tagger(backbone, recipe="default")
    with pytest.raises(ValueError, match="recipe: tagging"):
        wrong.fit(DATA.tokens[:30], NAMES[:30])


@pytest.mark.parametrize("recipe", ["tagging", "cis", "lexical-sae", "cajt"])
def test_every_recipe_tags(backbone: Path, tmp_path: Path, recipe: str) -> None:
    config = small_config(backbone, recipe=recipe, circuit_positions=20)
    done = fit(
        config, tagged_dataset(48), tagged_dataset(16, 1), tmp_path, held_out=tagged_dataset(16, 2)
    )
    assert {"f1", "precision", "recall", "accuracy", "open_words"} <= set(done.held_out)
    assert done.held_out["max_residual"] < 1e-4


def test_the_twin_tags_too(backbone: Path, tmp_path: Path) -> None:
    config = small_config(backbone, dense_twin=True, epochs=12, learning_rate=3e-3)
    done = fit(config, tagged_dataset(96), None, tmp_path, held_out=tagged_dataset(20, 2))
    assert done.held_out["f1"] > 0.9
    assert "open_words" not in done.held_out


def test_a_killed_run_goes_on_as_if_nothing_had_been(backbone: Path, tmp_path: Path) -> None:
    """Sampled positions are drawn from a generator that a checkpoint keeps."""
    from transformers import TrainerCallback

    class Kill(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            if state.global_step == 10:
                control.should_training_stop = True
                control.should_save = True

    config = small_config(backbone, recipe="tagging", circuit_positions=12, epochs=3, **FREE)
    data = tagged_dataset(48)

    def losses(folder: Path, **more: Any) -> dict[int, float]:
        done = fit(config, data, None, folder, log_every=1, **more)
        assert done.trainer is not None
        log = done.trainer.state.log_history
        return {line["step"]: line["ce"] for line in log if "ce" in line}

    whole = losses(tmp_path / "whole")
    losses(tmp_path / "parts", callbacks=[Kill()])
    parts = losses(tmp_path / "parts", resume=True)
    assert parts == whole


def test_evaluation_matches_labels_by_name(fitted: LexicalTagger) -> None:
    from dataclasses import replace

    data = tagged_dataset(30, seed=3)
    turned = replace(
        data,
        label_names=TAGS[::-1],
        tags=[[len(TAGS) - 1 - tag for tag in tags] for tags in data.tags],
    )
    found = evaluate_model(fitted.model_, data)
    assert found == evaluate_model(fitted.model_, turned)
    assert set(found["types"]) == {"ART", "MOOD"}
    assert found["rows"] == 30
    strange = replace(data, label_names=("O", "B-ART", "I-ART", "B-X", "I-X"))
    with pytest.raises(ValueError, match="the label 'B-X', which the model does not know"):
        evaluate_model(fitted.model_, strange)
