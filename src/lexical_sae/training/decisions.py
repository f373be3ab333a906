"""From the inputs of a batch to the decisions that count: one per text, or one per tagged word."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from lexical_sae.model.screen import low_precision_is_fast
from lexical_sae.training.batching import IGNORED
from lexical_sae.training.guide import DenseGuide

MOST_POSITIONS = 2**20  # more than any window has


@dataclass(frozen=True, eq=False)
class Batch:
    """What the terms need to know of a batch besides the model's state. R decisions: B texts, or
    the tagged words of B sentences."""

    labels: Tensor  # [R]
    index: Tensor  # [R] place in the training set of each decision's text
    place: Tensor  # [R] of the decision itself: that of the text, or of the word
    words: bool = False  # whether the decisions are words
    content_mask: Tensor | None = None  # [B, L] true at content words, for texts only
    dense_states: Tensor | None = None  # [R, H] what the guide reads, where there is one

    def at_rows(self, where: Tensor) -> Batch:
        """Only the words where the boolean `where` [R] holds."""
        return replace(
            self, labels=self.labels[where], index=self.index[where], place=self.place[where]
        )


def texts_batch(labels: Tensor, index: Tensor, content_mask: Tensor | None = None) -> Batch:
    """A batch of texts: each is one decision."""
    return Batch(labels, index, index, content_mask=content_mask)


def decide(
    model: nn.Module,
    inputs: dict[str, Tensor],
    guide: DenseGuide | None = None,
    precision: str = "fp32",
) -> tuple[Any, Batch]:
    """The model's state (logits [R, C]) and what it is compared with.

    `model` may be wrapped: it is called through its forward, so that several processes add up
    their gradients. `precision` is the backbone's; gate and head are in fp32 whatever it says.
    """
    labels, index = inputs["labels"], inputs["index"]
    read = {"input_ids": inputs["input_ids"], "attention_mask": inputs["attention_mask"]}
    where = labels != IGNORED if labels.dim() == 2 else None  # [B, L]
    task = "classification" if where is None else "tagging"
    half = in_half_precision(precision, labels.device.type)
    with torch.autocast(labels.device.type, torch.bfloat16, enabled=half):
        state = model(**read, task=task, where=where)
    if where is None:
        return state, _guided(texts_batch(labels, index), inputs, guide)
    texts, position = index[:, None].expand_as(labels), torch.arange(labels.shape[1])
    places = texts * MOST_POSITIONS + position.to(index.device)
    batch = Batch(labels[where], texts[where], places[where], words=True)
    return state.at_rows(where), _guided(batch, inputs, guide)


def in_half_precision(precision: str, device: str) -> bool:
    """Whether the backbone runs in bfloat16 on such a device: `auto` where that is faster."""
    if precision != "auto":
        return precision == "bf16"
    if device == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return device == "cpu" and low_precision_is_fast()


def _guided(batch: Batch, inputs: dict[str, Tensor], guide: DenseGuide | None) -> Batch:
    return batch if guide is None else replace(batch, dense_states=guide.take(inputs))


def sample_rows(rows: int, most: int, device: torch.device) -> Tensor | None:
    """[rows] bool with `most` of them true, drawn at random; None if there are no more."""
    if rows <= most:
        return None
    chosen = torch.zeros(rows, dtype=torch.bool, device=device)
    chosen[torch.randperm(rows)[:most].to(device)] = True
    return chosen
