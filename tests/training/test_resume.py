"""A run that is killed and resumed gives the losses of one that was not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import TrainerCallback

from lexical_sae.training.fit import Fitted, fit
from tests.training.small import save_backbone, small_config, small_dataset

EVERYTHING: dict[str, Any] = {
    "recipe": "default",
    "completeness": {"form": "kl"},
    "separation": {"form": "contrastive", "learn_margin": True},
    "sharpness": {},
    "sparsity": {"form": "target_l1"},
    "frequency": {},
    "anchor": {},
    "content": {},
    "guide": {},
    "model": {"positions": "words"},
    "dictionary_rate_factor": 1,
    "weighting": "uncertainty",
    "weight_average": 0.9,
    "gradient_centralisation": True,
    "label_smoothing": 0.1,
    "target_accuracy": 0.9,
    "early_stopping": 5,
    "epochs": 3,
    "warmup_fraction": 0.25,
}


class KilledError(Exception):
    pass


class KillAt(TrainerCallback):
    def __init__(self, step: int) -> None:
        self.step = step

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.global_step == self.step:
            raise KilledError


@pytest.fixture(scope="module")
def backbone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_backbone(tmp_path_factory.mktemp("backbone"))


def steps_of(done: Fitted) -> dict[int, dict[str, float]]:
    assert done.trainer is not None
    history = done.trainer.state.log_history
    volatile = ("grad_norm", "train_runtime")
    return {
        line["step"]: {k: v for k, v in line.items() if k not in volatile}
        for line in history
        if "loss" in line
    }


def train(config: Any, folder: Path, **options: Any) -> Fitted:
    return fit(config, small_dataset(64), small_dataset(16, seed=1), folder, log_every=1, **options)


CASES = {
    "everything": EVERYTHING,
    "schedule-free": {"recipe": "cajt", "epochs": 3, "early_stopping": None},
    "attention and accumulation": {
        **EVERYTHING,
        "gradient_accumulation_steps": 2,
        "model": {
            "pooling": "attention",
            "gate": "jump",
            "hidden_bias": True,
            "positions": "words",
        },
    },
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("kill_at", [0.5, 0.8])
def test_resumed_run_gives_the_same_losses(
    backbone: Path, tmp_path: Path, name: str, kill_at: float
) -> None:
    config = small_config(backbone, **CASES[name])
    whole = train(config, tmp_path / "whole")
    step = int(kill_at * whole.steps)
    with pytest.raises(KilledError):
        train(config, tmp_path / "killed", callbacks=[KillAt(step)])
    resumed = train(config, tmp_path / "killed", resume=True)
    expected, found = steps_of(whole), steps_of(resumed)
    assert resumed.steps == whole.steps
    assert len(found) == len(expected)
    for number, values in expected.items():
        assert found[number] == values, number
    for (key, a), b in zip(
        whole.model.state_dict().items(), resumed.model.state_dict().values(), strict=True
    ):
        assert torch.equal(a, b), key


def test_the_state_of_the_controllers_is_in_the_checkpoint(backbone: Path, tmp_path: Path) -> None:
    """Without it the resumed run differs: the equality above is not for nothing."""
    config = small_config(backbone, **EVERYTHING)
    whole = train(config, tmp_path / "whole")
    with pytest.raises(KilledError):
        train(config, tmp_path / "killed", callbacks=[KillAt(20)])
    numbers = next((tmp_path / "killed" / "checkpoints").glob("checkpoint-*/objective.json"))
    numbers.write_text(numbers.read_text().replace('"log_multiplier": ', '"log_multiplier": 1'))
    resumed = train(config, tmp_path / "killed", resume=True)
    assert steps_of(whole)[24]["loss"] != steps_of(resumed)[24]["loss"]


def test_fewer_epochs_may_end_the_warm_up_at_once(backbone: Path, tmp_path: Path) -> None:
    many = small_config(backbone, epochs=30, warmup_fraction=0.5)
    with pytest.raises(KilledError):
        train(many, tmp_path / "run", callbacks=[KillAt(20)])
    fewer = small_config(backbone, epochs=4, warmup_fraction=0.25)
    resumed = train(fewer, tmp_path / "run", resume=True)
    after = [line for step, line in steps_of(resumed).items() if step > 20]
    assert after
    assert all(line["phase"] == 1 and line["bound"] > 0 for line in after)


def test_half_written_checkpoints_are_passed_over(backbone: Path, tmp_path: Path) -> None:
    config = small_config(backbone, epochs=2)
    whole = train(config, tmp_path / "run")
    torn = tmp_path / "run" / "checkpoints" / "checkpoint-999"
    torn.mkdir()
    (torn / "model.safetensors").write_bytes(b"")
    resumed = train(config, tmp_path / "run", resume=True)
    assert resumed.steps == whole.steps
