"""Runs on a tiny backbone: both phases, the knobs, and the recipes end to end."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from lexical_sae.attribution.verify import verify_sum
from lexical_sae.model.lexical_sae import LexicalSAE
from lexical_sae.training.fit import Fitted, build_model, fit
from lexical_sae.training.head_start import fit_head
from lexical_sae.training.objective import Objective
from lexical_sae.training.reference import collect_reference
from tests.training.small import save_backbone, small_config, small_dataset


@pytest.fixture(scope="module")
def backbone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_backbone(tmp_path_factory.mktemp("backbone"))


def run(backbone: Path, folder: Path, **settings: Any) -> Fitted:
    return fit(
        small_config(backbone, **settings),
        small_dataset(96),
        small_dataset(24, seed=1),
        folder,
        held_out=small_dataset(40, seed=2),
        log_every=1,
    )


def history(done: Fitted, name: str) -> list[float]:
    assert done.trainer is not None
    return [line[name] for line in done.trainer.state.log_history if name in line]


@pytest.mark.parametrize("recipe", ["default", "cis", "lexical-sae", "cajt"])
def test_every_recipe_runs_and_logs_its_terms(backbone: Path, tmp_path: Path, recipe: str) -> None:
    done = run(backbone, tmp_path, recipe=recipe, learning_rate=1e-3)
    settings = small_config(backbone, recipe=recipe).settings
    for term in ("completeness", "separation", "sharpness", "sparsity", "frequency", "anchor"):
        logged = history(done, term)
        assert bool(logged) == (getattr(settings, term) is not None), term
        assert all(torch.isfinite(torch.tensor(logged)))
    assert set(history(done, "phase")) == {0.0, 1.0}
    assert len(history(done, "multiplier")) == sum(history(done, "phase"))
    assert done.held_out["max_residual"] < 1e-5
    assert 0 <= done.held_out["circuit_agreement"] <= 1


def test_it_learns_and_comes_down_to_the_target(backbone: Path, tmp_path: Path) -> None:
    done = run(*(backbone, tmp_path), epochs=30, target_words=4, start_words=16, learning_rate=3e-3)
    assert done.held_out["accuracy"] > 0.95
    assert done.held_out["open_words"] < 6
    words = history(done, "open_words")
    assert words[-1] < 0.6 * words[0]


@pytest.mark.parametrize("depth", [2, 3])
def test_a_bcos_head_learns_too(backbone: Path, tmp_path: Path, depth: int) -> None:
    wanted = {"epochs": 20, "target_words": 4, "start_words": 16, "learning_rate": 3e-3}
    model = {"head": "bcos", "head_depth": depth, "head_width": 16}
    done = run(backbone, tmp_path, **wanted, model=model)
    assert done.held_out["accuracy"] > 0.95
    assert done.held_out["max_relative_residual"] < 1e-5


def test_content_positions_open_nothing_at_function_words(backbone: Path, tmp_path: Path) -> None:
    done = run(backbone, tmp_path, content=None, model={"positions": "content"})
    assert done.held_out["content_share"] == pytest.approx(1.0)


def test_target_accuracy_sets_the_bound_from_validation(backbone: Path, tmp_path: Path) -> None:
    done = run(backbone, tmp_path, target_accuracy=0.8, epochs=4)
    trainer = done.trainer
    assert trainer is not None
    assert trainer.accuracy_bound is not None
    assert len(trainer.accuracy_bound.points) >= 2
    assert trainer.objective.geco.bound is not None
    assert trainer.objective.geco.bound < 1.5


def test_early_stopping_takes_the_best_of_the_circuit_phase(backbone: Path, tmp_path: Path) -> None:
    done = run(backbone, tmp_path, early_stopping=1, epochs=30, learning_rate=3e-3)
    assert done.trainer is not None
    assert done.steps < 30 * 12
    evaluations = [line for line in done.trainer.state.log_history if line.get("eval_phase") == 1.0]
    best = done.trainer.best
    assert best is not None
    assert best.best is not None
    assert best.best % 1 == pytest.approx(max(e["eval_accuracy"] for e in evaluations) % 1)
    # what is told of validation is told of the weights that are kept
    kept = max(evaluations, key=lambda line: line["eval_accuracy"])
    assert done.validation["accuracy"] == kept["eval_accuracy"]
    again = done.trainer.evaluate()
    assert again["eval_accuracy"] == pytest.approx(max(e["eval_accuracy"] for e in evaluations))


def test_an_evaluation_right_after_the_warm_up_is_none_of_the_circuit_phase(
    backbone: Path, tmp_path: Path
) -> None:
    done = run(backbone, tmp_path, early_stopping=5, epochs=4, warmup_fraction=0.5)
    assert done.trainer is not None
    phases = [line["eval_phase"] for line in done.trainer.state.log_history if "eval_phase" in line]
    assert phases == [0.0, 0.0, 1.0, 1.0]


def test_terms_see_the_words_that_dropout_hides_from_the_head(
    backbone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, residuals = Objective._terms, []

    def watched(self: Objective, state: Any, batch: Any, number: float) -> Any:
        residuals.append(float(verify_sum(state).residual.max()))
        return plain(self, state, batch, number)

    monkeypatch.setattr(Objective, "_terms", watched)
    run(backbone, tmp_path, word_dropout=0.5)
    assert residuals
    assert max(residuals) < 1e-5


def test_the_twin_has_the_same_batches_and_no_words(backbone: Path, tmp_path: Path) -> None:
    ours = run(backbone, tmp_path / "ours")
    twin = run(backbone, tmp_path / "twin", dense_twin=True)
    assert twin.steps == ours.steps
    assert set(twin.held_out) == {"accuracy", "ce"}
    assert not history(twin, "open_words")


def test_weights_that_count_are_taken_in_the_end(backbone: Path, tmp_path: Path) -> None:
    done = run(backbone, tmp_path, weight_average=0.9)
    trainer = done.trainer
    assert trainer is not None
    assert trainer.average is not None
    expected = {k.removeprefix("average."): v for k, v in trainer.average.state_dict().items()}
    trained = {name: p for name, p in done.model.named_parameters() if p.requires_grad}
    assert len(trained) == len(expected) - 1  # the number of updates is kept among them
    for name, p in trained.items():
        assert torch.equal(p, expected[name]), name


def test_a_head_start_reads_the_untrained_words(backbone: Path) -> None:
    from lexical_sae.training.batching import Collate
    from lexical_sae.training.encoding import encode_texts

    config = small_config(backbone)
    data = small_dataset(96)
    model: LexicalSAE = build_model(config, data.label_names, data.texts)
    assert model.tokenizer is not None
    texts = encode_texts(
        model.tokenizer, data.texts, data.labels, 64, model.config.special_token_ids
    )
    collate = Collate(model.tokenizer.pad_token_id)
    reference = collect_reference(model, texts, collate, sample=96)
    assert reference.stride == 1
    before = {name: p.clone() for name, p in model.named_parameters()}
    first = fit_head(model.head, reference, 1, seed=0)
    last = fit_head(model.head, reference, 60, seed=0)
    assert last < 0.75 * first
    for name, p in model.named_parameters():
        assert torch.equal(p, before[name]) != name.startswith("head."), name
        assert p.grad is None
    thinner = collect_reference(model, texts, collate, sample=24)
    assert thinner.knows(torch.arange(6)).tolist() == [True, False, False, False, True, False]


def test_bad_data_gets_one_sentence(backbone: Path, tmp_path: Path) -> None:
    one_class = replace(small_dataset(16), labels=[0] * 16)
    with pytest.raises(ValueError, match="one class"):
        fit(small_config(backbone), one_class, None, tmp_path)
    with pytest.raises(ValueError, match="max_length is 5000"):
        fit(small_config(backbone, max_length=5000), small_dataset(16), None, tmp_path)


def test_fewer_texts_than_a_batch(backbone: Path, tmp_path: Path) -> None:
    done = fit(small_config(backbone, batch_size=64), small_dataset(10), None, tmp_path)
    assert done.steps == 2
