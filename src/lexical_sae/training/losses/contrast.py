"""Contrast: texts of a class lie together and apart from the others (Khosla et al. 2020, SupCon).

It is taken of the states that the guide reads. Cross-entropy asks only for the right side of a
border; this asks for distance to every other text of the batch, and what the backbone learns by it
carries over better to new texts (docs/choices.md).
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from lexical_sae.training.distributed import rows_of_all_processes

MOST_ROWS = 512  # of a process, evenly spread: tagged words are many, and this is square in them
TEMPERATURE = 0.3  # of the cosines
_NEVER = -1e9  # not -inf: a row alone in its batch would have no number


def contrast(states: Tensor, labels: Tensor) -> Tensor:
    """states [R, H], labels [R]. For every row: how surprising those of its own class are among all
    others by their cosine; the mean over the rows of the batch, of all processes. A row without
    such company counts 0: with many classes most rows have none, and the few that do would
    otherwise outweigh the cross-entropy. Batches that are accumulated into one step are each taken
    alone."""
    stride = max(1, math.ceil(len(states) / MOST_ROWS))
    states, labels = states[::stride], labels[::stride]
    unit = F.normalize(rows_of_all_processes(states), dim=-1)
    labels = rows_of_all_processes(labels)
    itself = torch.eye(len(labels), dtype=torch.bool, device=labels.device)
    near = (unit @ unit.T / TEMPERATURE).masked_fill(itself, _NEVER)
    likely = near - near.logsumexp(1, keepdim=True)  # [R, R] log shares of each row
    company = (labels[:, None] == labels) & ~itself
    number = company.sum(1)
    surprise = -likely.masked_fill(~company, 0.0).sum(1) / number.clamp(min=1)
    return surprise.mean()
