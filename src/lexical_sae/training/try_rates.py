"""The learning-rate range test on the real objective and the first batches of a run."""

from __future__ import annotations

from torch import Tensor, nn

from lexical_sae.training.batching import Collate, EncodedTexts, LengthBuckets
from lexical_sae.training.decisions import decide
from lexical_sae.training.objective import Objective
from lexical_sae.training.optimizers import build_optimizer, parameter_groups
from lexical_sae.training.range_test import learning_rate_range_test
from lexical_sae.training.settings import Settings


def try_rates(
    model: nn.Module,
    objective: Objective,
    texts: EncodedTexts,
    collate: Collate,
    settings: Settings,
    batch_size: int,
) -> float:
    """The rate at which the task loss falls fastest; model and objective are left untouched."""
    order = list(LengthBuckets(texts.lengths, batch_size, settings.seed))
    batches = [order[i : i + batch_size] for i in range(0, len(order), batch_size)]
    device = next(model.parameters()).device

    def loss(step: int) -> Tensor:
        inputs = collate([texts[i] for i in batches[step % len(batches)]])
        inputs = {name: tensor.to(device) for name, tensor in inputs.items()}
        state, batch = decide(model, inputs, precision=settings.precision)
        return objective.task_loss(state.logits, batch.labels)

    groups = parameter_groups(model, settings)
    plain = settings.model_copy(update={"optimizer": "adamw"})
    tested = learning_rate_range_test(loss, model, lambda rate: build_optimizer(groups, plain))
    return tested.rate
