"""A dense head beside the words while training, which is dropped afterwards.

A word's gradient reaches only the position that opened it, so a backbone that learns through the
words alone learns more slowly than its dense twin. The guide is that twin's head on the same
hidden states: it brings the gradient of every position, and what it knows is handed to the words
(the KL of its probabilities and theirs). Nothing of it is left in the model.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lexical_sae.model.backbone import states_of_output
from lexical_sae.model.lexical_sae import LexicalSAE
from lexical_sae.training.batching import IGNORED
from lexical_sae.training.distributed import mean_over_processes
from lexical_sae.training.losses.contrast import contrast
from lexical_sae.training.settings import Guide, Settings

DROPOUT = 0.1  # as in the dense twin, unless the settings say otherwise


class Guidance(NamedTuple):
    """What the guide has to say of a batch, each a number."""

    ce: Tensor  # its own cross-entropy
    gap: Tensor  # the KL of its probabilities and those of the words
    contrast: Tensor | None  # how far texts of a class are from lying together, if asked for


class DenseGuide(nn.Module):
    """Mean over all tokens (none for tags), dropout, one linear layer, like the dense twin."""

    def __init__(
        self, settings: Guide, size: int, classes: int, dropout: float | None, seed: int
    ) -> None:
        super().__init__()
        self.strength, self.distillation = settings.strength, settings.distillation
        self.contrast = settings.contrast
        self.dropout = DROPOUT if dropout is None else dropout
        draw = torch.Generator().manual_seed(seed)
        self.weight = nn.Parameter(0.02 * torch.randn(classes, size, generator=draw))
        self.bias = nn.Parameter(torch.zeros(classes))
        self.seen: list[Tensor] = []  # states of the batch that has just passed

    def take(self, inputs: dict[str, Tensor]) -> Tensor:
        """[R, H]: what the guide reads of the batch that has just passed, one row per decision."""
        h = self.seen.pop().to(self.weight.dtype)  # [B, L, H]
        if inputs["labels"].dim() == 2:
            return h[inputs["labels"] != IGNORED]
        real = inputs["attention_mask"].unsqueeze(-1).to(h.dtype)
        mean: Tensor = (h * real).sum(1) / real.sum(1).clamp(min=1)
        return mean

    def forward(self, states: Tensor, logits: Tensor, labels: Tensor) -> Guidance:
        """`states` [R, H] are what it reads, `logits` [R, C] what the words say."""
        read = F.dropout(states, self.dropout, self.training)
        # every process sees its own texts: the mean of the gradients is that of all texts
        dense = F.linear(
            read,
            mean_over_processes(self.weight),
            mean_over_processes(self.bias),
        )
        known = F.log_softmax(dense.detach(), -1)
        said = F.log_softmax(logits, -1)
        gap = (known.exp() * (known - said)).sum(-1).mean()
        together = contrast(states, labels) if self.contrast > 0 else None
        return Guidance(F.cross_entropy(dense, labels), gap, together)


def build_guide(model: nn.Module, settings: Settings, classes: int) -> DenseGuide | None:
    """The guide that the settings ask for; a dense twin needs none."""
    if settings.guide is None or not isinstance(model, LexicalSAE):
        return None
    size = model.lexical.weight.shape[1]
    return DenseGuide(settings.guide, size, classes, settings.dropout, settings.seed)


@contextlib.contextmanager
def watching(guide: DenseGuide | None, model: Any) -> Iterator[None]:
    """Within the block the guide sees the backbone's states of every forward pass in training;
    afterwards nothing of it hangs on the model."""
    if guide is None:
        yield
        return

    def keep(module: nn.Module, args: Any, output: Any) -> None:
        if module.training:
            guide.seen[:] = [states_of_output(output, model.config.backbone_kind)]

    handle = model.backbone.register_forward_hook(keep)
    try:
        yield
    finally:
        handle.remove()
        guide.seen.clear()
