"""Every trainable parameter has one group, with the rate and the decay of its part."""

from __future__ import annotations

import sys
from typing import Any

import pytest
import torch
from torch import nn

from lexical_sae.training.optimizers import (
    build_optimizer,
    build_schedule,
    parameter_groups,
    part_of,
    warmup_steps,
)
from lexical_sae.training.settings import Settings
from tests.tiny import FAMILIES, tiny_model

SETTINGS = Settings(learning_rate=1e-3, head_rate_factor=10, gate_rate_factor=25, weight_decay=0.1)


class Twin(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4))
        self.head = nn.Linear(4, 2)


def _parameters(groups: list[dict[str, Any]]) -> list[nn.Parameter]:
    return [p for group in groups for p in group["params"]]


@pytest.mark.parametrize("family", FAMILIES)
def test_every_trainable_parameter_has_exactly_one_group(family: str) -> None:
    model = tiny_model(family, pooling="attention", hidden_bias=True)
    frozen = model.backbone.get_input_embeddings().weight.requires_grad_(False)
    learned = [nn.Parameter(torch.ones(())), nn.Parameter(torch.ones(3))]
    found = [id(p) for p in _parameters(parameter_groups(model, SETTINGS, learned))]
    assert len(found) == len(set(found))
    expected = {id(p) for p in model.parameters() if p.requires_grad} | {id(p) for p in learned}
    assert set(found) == expected
    assert id(frozen) not in found


def test_parts_have_their_rates_and_only_matrices_decay() -> None:
    model = tiny_model("bert", pooling="attention", hidden_bias=True)
    margin = nn.Parameter(torch.ones(2, 2))
    groups = parameter_groups(model, SETTINGS, [margin])
    rates = {group["name"]: group["lr"] for group in groups}
    assert rates == pytest.approx(
        {"backbone": 1e-3, "dictionary": 1e-3, "head": 1e-2, "gate": 2.5e-2, "objective": 1e-2}
    )
    home = {id(p): group for group in groups for p in group["params"]}
    for name, p in model.named_parameters():
        assert home[id(p)]["weight_decay"] == (0.1 if p.dim() >= 2 else 0.0), name
    assert home[id(margin)]["weight_decay"] == 0.0
    assert all(group["lr"] == 1e-3 * group["factor"] and group["params"] for group in groups)
    parts = {
        "gate": [model.lexical.threshold],
        "head": [model.lexical.attention, *model.head.parameters()],
        "dictionary": [model.lexical.weight, model.lexical.bias],
        "backbone": model.backbone.parameters(),
    }
    for part, parameters in parts.items():
        assert {home[id(p)]["name"] for p in parameters} == {part}


def test_a_twin_without_a_lexical_layer_has_groups_too() -> None:
    twin = Twin()
    groups = parameter_groups(twin, SETTINGS)
    assert [group["name"] for group in groups] == ["backbone", "backbone", "head", "head"]
    assert len(_parameters(groups)) == len(list(twin.parameters()))
    twin.head.requires_grad_(False)
    assert {group["name"] for group in parameter_groups(twin, SETTINGS)} == {"backbone"}


def test_what_the_objective_learns_is_counted_once_wherever_it_lives() -> None:
    twin = Twin()
    groups = parameter_groups(twin, SETTINGS, [twin.head.bias, twin.head.bias])
    home = [group["name"] for group in groups for p in group["params"] if p is twin.head.bias]
    assert home == ["objective"]


def test_a_guide_learns_as_the_twins_head_does() -> None:
    model, guide, margin = tiny_model("bert"), nn.Linear(4, 2), nn.Parameter(torch.ones(()))
    settings = SETTINGS.model_copy(update={"head_rate_factor": 5.0})
    groups = parameter_groups(model, settings, [margin, *guide.parameters()], guide)
    home = {id(p): group for group in groups for p in group["params"]}
    twin = {id(p): g for g in parameter_groups(Twin(), settings) for p in g["params"]}
    rates = {group["lr"] for group in twin.values() if group["name"] == "head"}
    assert {home[id(p)]["lr"] for p in guide.parameters()} == rates
    assert home[id(guide.weight)]["weight_decay"] > home[id(guide.bias)]["weight_decay"] == 0
    assert home[id(margin)]["name"] == "objective"
    assert home[id(margin)]["lr"] == pytest.approx(1e-2)


def test_an_unknown_part_is_named() -> None:
    assert part_of("_fsdp_wrapped_module.backbone._orig_mod.weight") == "backbone"
    assert part_of("transform.dense.weight") == "dictionary"
    twin = Twin()
    twin.novelty = nn.Linear(2, 2)
    with pytest.raises(ValueError, match=r"novelty\.weight"):
        parameter_groups(twin, SETTINGS)


def test_adamw_is_fused_and_leaves_the_groups_alone() -> None:
    groups = parameter_groups(Twin(), SETTINGS)
    keys = [set(group) for group in groups]
    optimizer = build_optimizer(groups, SETTINGS)
    assert isinstance(optimizer, torch.optim.AdamW)
    assert optimizer.defaults["fused"] is True
    assert [set(group) for group in groups] == keys
    assert optimizer.param_groups[-1]["lr"] == pytest.approx(1e-2)


def test_schedule_free_is_one_sentence_away(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = SETTINGS.model_copy(update={"optimizer": "schedule_free"})
    optimizer = build_optimizer(parameter_groups(Twin(), settings), settings, warmup_steps=7)
    assert type(optimizer).__name__ == "AdamWScheduleFree"
    assert [group["warmup_steps"] for group in optimizer.param_groups] == [7] * 4
    monkeypatch.setitem(sys.modules, "schedulefree", None)
    with pytest.raises(ImportError, match=r'run pip install "lexical-sae\[training\]"\.$'):
        build_optimizer(parameter_groups(Twin(), settings), settings)


def _rates(steps: int, **changes: Any) -> list[tuple[float, float]]:
    """(backbone, head) rate at each step."""
    settings = SETTINGS.model_copy(update=changes)
    optimizer = build_optimizer(parameter_groups(Twin(), settings), settings)
    schedule = build_schedule(optimizer, settings, steps)
    seen = []
    for _ in range(steps):
        seen.append((optimizer.param_groups[0]["lr"], optimizer.param_groups[-1]["lr"]))
        optimizer.step()
        schedule.step()
    return seen


@pytest.mark.parametrize(
    ("schedule", "middle", "last"),
    [("linear", 0.5, 0.02), ("cosine", 0.5, 0.003), ("constant", 1.0, 1.0)],
)
def test_schedules_warm_up_then_take_their_form(schedule: str, middle: float, last: float) -> None:
    rates = _rates(50, schedule=schedule, learning_rate_warmup=0.2)
    backbone = [low / 1e-3 for low, _ in rates]
    assert backbone[:11] == pytest.approx([i / 10 for i in range(11)])
    assert backbone[30] == pytest.approx(middle)
    assert backbone[-1] == pytest.approx(last, abs=0.01)
    assert all(high == pytest.approx(10 * low) for low, high in rates)


def test_schedule_free_keeps_its_rate_for_it_warms_up_itself() -> None:
    settings = SETTINGS.model_copy(update={"optimizer": "schedule_free", "schedule": "linear"})
    optimizer: Any = build_optimizer(parameter_groups(Twin(), settings), settings)
    optimizer.train()
    schedule = build_schedule(optimizer, settings, 10)
    for _ in range(10):
        assert optimizer.param_groups[0]["lr"] == pytest.approx(1e-3)
        optimizer.step()
        schedule.step()


def test_warmup_is_rounded_up() -> None:
    settings = SETTINGS.model_copy(update={"learning_rate_warmup": 0.06})
    assert [warmup_steps(settings, steps) for steps in (0, 1, 100, 101)] == [0, 1, 6, 7]
