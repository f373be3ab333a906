"""Constrained decoding: the best sequence of tags that is legal IOB2, by Viterbi.

The score of a sequence is the sum of its tags' logits; a transition is allowed or not, and has no
score of its own. So each emitted tag's logit is still the exact sum that the explanation shows.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def allowed_transitions(labels: Sequence[str]) -> tuple[Tensor, Tensor]:
    """([C, C] whether tag j may follow tag i, [C] whether a sentence may start with it).

    ``I-TYPE`` only after ``B-TYPE`` or ``I-TYPE``; labels that are no IOB2 tags may stand anywhere.
    """
    parts = [label.partition("-") for label in labels]
    inside = [prefix == "I" and bool(dash) and bool(kind) for prefix, dash, kind in parts]
    follows = torch.ones(len(labels), len(labels), dtype=torch.bool)
    for j, (_, _, kind) in enumerate(parts):
        if inside[j]:
            for i, (prefix, _, other) in enumerate(parts):
                follows[i, j] = prefix in ("B", "I") and other == kind
    return follows, ~torch.tensor(inside)


@torch.no_grad()
def best_legal_tags(logits: Tensor, follows: Tensor, starts: Tensor) -> list[int]:
    """logits [n, C] of one sentence's tokens → n tags. Ties go to the lower index."""
    if not len(logits):
        return []
    scores = logits.double().cpu()
    closed = torch.tensor(-torch.inf, dtype=torch.float64)
    step = torch.where(follows.cpu(), torch.zeros((), dtype=torch.float64), closed)  # [C, C]
    best = torch.where(starts.cpu(), scores[0], closed)  # [C]
    back: list[Tensor] = []
    for emission in scores[1:]:
        before, came_from = (best[:, None] + step).max(0)
        best = before + emission
        back.append(came_from)
    tag = int(best.argmax())
    tags = [tag]
    for came_from in reversed(back):
        tag = int(came_from[tag])
        tags.append(tag)
    return tags[::-1]
