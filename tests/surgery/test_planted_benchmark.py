"""The benchmark of planted words: what was lost is told by a model trained without the word."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest
from benchmarks import planted
from benchmarks.recovery import pooled_recovery, recovered

from lexical_sae.training.config import RunConfig
from tests.training.small import save_backbone, small_config, small_dataset


def test_what_comes_back_is_a_share_of_what_was_lost() -> None:
    assert recovered(0.8, 0.6, 0.7) == pytest.approx(0.5)
    assert recovered(0.6, 0.6, 0.7) is None
    # the second trial lost nothing, so alone it has no share; in the sums it counts all the same
    pooled = pooled_recovery(
        [0.8, 0.7] + 3 * [0.9], [0.6, 0.7] + 3 * [0.7], [0.8, 0.69] + 3 * [0.9]
    )
    assert pooled.value == pytest.approx(0.79 / 0.8)
    assert pooled.low is not None
    assert pooled.low <= 0.79 / 0.8 <= (pooled.high or 0)


def test_a_loss_that_may_be_none_has_no_interval_of_its_share() -> None:
    unclear = pooled_recovery([0.8, 0.6], [0.6, 0.7], [0.8, 0.7])
    assert unclear.value == pytest.approx(2.0)
    assert unclear.low is None
    assert "not clear of 0" in unclear.why
    assert pooled_recovery([0.6], [0.7], [0.8]).value is None


def test_trials_are_measured_against_a_clean_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_backbone(tmp_path / "backbone")

    def small(values: dict[str, Any], assigned: dict[str, Any]) -> RunConfig:
        return small_config(tmp_path / "backbone", **values, **assigned)

    monkeypatch.setattr(planted, "resolve_config", small)
    monkeypatch.setattr(planted, "WORDS", ("garden", "window"))
    splits = {
        name: small_dataset(rows, seed)
        for name, rows, seed in (("train", 64, 0), ("validation", 80, 1), ("test", 80, 2))
    }
    chosen = argparse.Namespace(
        **{"train_rows": 64, "epochs": 1, "seeds": 1, "output": tmp_path / "runs"},
        **{"share": 0.9, "elsewhere": 0.05, "set": []},
    )
    found = [planted.trial(number, splits, chosen) for number in range(2)]
    folders = sorted(one.name for one in (tmp_path / "runs").iterdir())
    assert folders == [
        "clean-64-seed0",
        "garden-positive-64-0.9-0.05",
        "window-negative-64-0.9-0.05",
    ]
    result = json.loads(json.dumps(planted.summary(found)))
    assert set(result) == {"trials", "found", "within the model", "plain", "spurious"}
    assert set(result["within the model"]) == set(planted.REMEDIES)
    for texts in ("plain", "spurious"):
        accuracy = result[texts]["accuracy"]
        lost = accuracy["clean"] - accuracy["spoilt"]
        assert result[texts]["lost"]["value"] == pytest.approx(lost)
        assert set(result[texts]["recovered"]) == set(planted.REMEDIES)
    # the clean model is another model: nothing was planted for it
    weights = [(tmp_path / "runs" / name / "model" / "model.safetensors") for name in folders[:2]]
    assert weights[0].read_bytes() != weights[1].read_bytes()
