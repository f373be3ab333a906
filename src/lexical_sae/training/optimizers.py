"""The optimiser of a run: its parameter groups, its update rule, its learning-rate schedule."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler
from transformers import get_scheduler

from lexical_sae.training.settings import Settings

PARTS = ("backbone", "dictionary", "head", "gate", "guide", "objective")
# what FSDP and torch.compile put into a parameter's name
_WRAPPERS = ("_fsdp_wrapped_module", "_orig_mod")
_SCHEDULES = {"linear": "linear", "cosine": "cosine", "constant": "constant_with_warmup"}
_FUSED_DEVICES = ("cpu", "cuda")


def part_of(name: str) -> str:
    """The part of the model, and so the learning rate, that a parameter belongs to."""
    path = [piece for piece in name.split(".") if piece not in _WRAPPERS]
    if path == ["lexical", "threshold"]:
        return "gate"
    if path[0] == "head" or path == ["lexical", "attention"]:
        return "head"  # both start from nothing, unlike the rest
    if path[:2] == ["lexical", "senses"]:
        return "backbone"  # its map must follow the states that it reads
    if path[0] in ("lexical", "transform"):
        return "dictionary"
    if path[0] == "backbone":
        return "backbone"
    raise ValueError(
        f"The parameter {name} belongs to no known part; expected its name to start with backbone, "
        "transform, lexical or head."
    )


def parameter_groups(
    model: nn.Module,
    settings: Settings,
    extra: Iterable[nn.Parameter] = (),
    guide: nn.Module | None = None,
) -> list[dict[str, Any]]:
    """Groups for an optimiser, up to two per part, both with the part as "name".

    Matrices are decayed; biases, norms, thresholds and `extra` (what the objective itself learns:
    margins, weights of terms) are not, since shrinking those has no meaning as a prior. A `guide`
    learns as the dense twin's head does. "factor" is the group's learning rate relative to the
    run's, for those who set the rate later.
    """
    guided = {id(p): p for p in guide.parameters()} if guide is not None else {}
    learned_by_objective = {id(p): p for p in extra if id(p) not in guided}
    members: dict[tuple[str, bool], list[nn.Parameter]] = {
        (part, decayed): [] for part in PARTS for decayed in (True, False)
    }
    for name, p in model.named_parameters():
        if p.requires_grad and id(p) not in learned_by_objective:
            members[part_of(name), p.dim() >= 2].append(p)
    for p in guided.values():
        members["guide", p.dim() >= 2].append(p)
    members["objective", False] = [p for p in learned_by_objective.values() if p.requires_grad]
    factors = {
        "head": settings.head_rate_factor,
        "guide": settings.head_rate_factor,
        "dictionary": settings.dictionary_rate_factor,
        "gate": settings.gate_rate_factor,
        # margins and weights of terms: at a backbone's rate they would stay where they start
        "objective": max(10.0, settings.head_rate_factor),
    }
    return [
        {
            "name": part,
            "params": params,
            "factor": factors.get(part, 1.0),
            "lr": settings.learning_rate * factors.get(part, 1.0),
            "weight_decay": settings.weight_decay if decayed else 0.0,
        }
        for (part, decayed), params in members.items()
        if params
    ]


def warmup_steps(settings: Settings, steps: int) -> int:
    """Steps over which the learning rate rises, of a run of `steps`."""
    return math.ceil(settings.learning_rate_warmup * steps)


def build_optimizer(
    groups: Sequence[dict[str, Any]], settings: Settings, *, warmup_steps: int = 0
) -> Optimizer:
    """The optimiser that the settings name.

    `warmup_steps` is for Schedule-Free, whose average is weighted by the learning rate, so that
    its warm-up has to be its own; AdamW gets its warm-up from `build_schedule`.
    """
    # the groups are copied, since an optimiser writes its state and defaults into them
    own = [dict(group) for group in groups]
    if settings.optimizer == "schedule_free":
        try:
            from schedulefree import AdamWScheduleFree
        except ImportError:
            raise ImportError(
                "The optimizer schedule_free needs the package schedulefree, which is not "
                'installed; run pip install "lexical-sae[training]".'
            ) from None
        free: Optimizer = AdamWScheduleFree(
            own, lr=settings.learning_rate, warmup_steps=warmup_steps
        )
        return free
    devices = {p.device.type for group in own for p in group["params"]}
    fused = devices <= set(_FUSED_DEVICES)
    return torch.optim.AdamW(own, lr=settings.learning_rate, fused=fused or None)


def build_schedule(optimizer: Optimizer, settings: Settings, steps: int) -> LRScheduler:
    """Warm-up, then the settings' schedule to the end of `steps`; the groups keep their factors.

    Schedule-Free gets a constant one: it warms up by itself, and a decay would undo its average.
    """
    name = _SCHEDULES[settings.schedule]
    if settings.optimizer == "schedule_free":
        name = "constant"
    schedule: LRScheduler = get_scheduler(
        name,
        optimizer,
        num_warmup_steps=warmup_steps(settings, steps),
        num_training_steps=steps,
    )
    return schedule
