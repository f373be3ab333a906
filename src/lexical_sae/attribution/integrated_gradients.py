"""Integrated Gradients from the empty text, in closed form.

Along t·s every hidden unit t·v + b switches at most once, at t = −b/v, so the integral of its
derivative is the length of the part of [0, 1] in which it is on: no steps, no remainder.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from lexical_sae.attribution.contributions import compute_attribution_tensor
from lexical_sae.model.bcos import BcosHead
from lexical_sae.model.heads import MLPHead
from lexical_sae.model.state import CircuitState
from lexical_sae.model.word_sums import sum_open_words


@torch.no_grad()
def integrated_gradients(state: CircuitState, classes: int | Sequence[int]) -> Tensor:
    """[P], or [P, K] for several classes: IG of the logits at the open words, from no open words.

    Row sums are logit(s) − `baseline_logits`. Without hidden biases these are the contributions;
    not so for a B-cos head, whose map moves with s, but not along t·s: there they are gradient ×
    input.
    """
    head, open_words = state.head, state.open_words
    if isinstance(head, BcosHead):
        return _gradient_times_input(state, classes)
    if not isinstance(head, MLPHead) or head.b1 is None:
        return compute_attribution_tensor(state, classes)
    several = torch.tensor([classes] if isinstance(classes, int) else list(classes))
    if len(several) and not 0 <= int(several.min()) <= int(several.max()) < head.classes:
        raise ValueError(f"classes is {classes}; expected numbers from 0 to {head.classes - 1}.")
    with torch.autocast(head.W1.device.type, enabled=False):
        share = share_of_path(sum_open_words(open_words, head.W1), head.b1)  # [rows, width]
        through = head.W1[open_words.word] * share[open_words.row]  # [P, width]
        found = open_words.value[:, None] * (through @ head.W2[several.to(through.device)].T)
    return found[:, 0] if isinstance(classes, int) else found


def _gradient_times_input(state: CircuitState, classes: int | Sequence[int]) -> Tensor:
    """The head is homogeneous, so its gradient is the same all the way from 0."""
    value = state.open_words.value.detach().requires_grad_()
    with torch.enable_grad():
        logits = state.head(replace(state.open_words, value=value))  # [rows, C]
        wanted = [classes] if isinstance(classes, int) else list(classes)
        parts = [
            torch.autograd.grad(logits[:, c].sum(), value, retain_graph=True)[0] for c in wanted
        ]
    found = torch.stack(parts, 1) * value.detach()[:, None]
    return found[:, 0] if isinstance(classes, int) else found


@torch.no_grad()
def baseline_logits(state: CircuitState) -> Tensor:
    """[C]: the logits of a text in which no word is open, which IG starts from."""
    head, nothing = state.head, state.open_words.subset(torch.zeros_like(state.open_words.row) > 0)
    logits: Tensor = head(nothing)
    return logits.reshape(-1, head.classes)[0]


def share_of_path(v: Tensor, b: Tensor) -> Tensor:
    """The length of {t in [0, 1]: t·v + b > 0}; v [rows, width], b [width]."""
    crossing = (-b / torch.where(v != 0, v, torch.ones_like(v))).clamp(0, 1)
    rising = torch.where(v > 0, 1 - crossing, crossing)  # on after, or before, the crossing
    still = (b > 0).to(v.dtype).expand_as(v)
    return torch.where(v == 0, still, rising)
