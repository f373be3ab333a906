"""From the inputs of a batch to the decisions that count: one per text, or one per tagged word."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from lexical_sae.training.batching import IGNORED


@dataclass(frozen=True, eq=False)
class Batch:
    """What the terms need to know of a batch besides the model's state. R decisions: B texts, or
    the tagged words of B sentences."""

    labels: Tensor  # [R]
    index: Tensor  # [R] place in the training set of each decision's text
    content_mask: Tensor | None = None  # [B, L] true at content words, for the content term

    def at_rows(self, where: Tensor) -> Batch:
        """Only the decisions where the boolean `where` [R] holds."""
        return Batch(self.labels[where], self.index[where], self.content_mask)


def decide(model: nn.Module, inputs: dict[str, Tensor]) -> tuple[Any, Batch]:
    """The model's state (logits [R, C]) and what it is compared with.

    `model` may be wrapped: it is called through its forward, so that several processes add up
    their gradients.
    """
    labels, index = inputs["labels"], inputs["index"]
    read = {"input_ids": inputs["input_ids"], "attention_mask": inputs["attention_mask"]}
    if labels.dim() == 1:
        return model(**read, task="classification"), Batch(labels, index)
    where = labels != IGNORED  # [B, L]
    state = model(**read, task="tagging", where=where)
    texts = index[:, None].expand_as(labels)[where]
    return state.at_rows(where), Batch(labels[where], texts)


def sample_rows(rows: int, most: int, device: torch.device) -> Tensor | None:
    """[rows] bool with `most` of them true, drawn at random; None if there are no more."""
    if rows <= most:
        return None
    chosen = torch.zeros(rows, dtype=torch.bool, device=device)
    chosen[torch.randperm(rows)[:most].to(device)] = True
    return chosen
