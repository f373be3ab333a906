"""The head's start: fitted to the words that the untrained model opens, before anything else moves.

A random head sends random gradients into the backbone, and for the first hundred steps words open
and close for no reason. A head that already reads the words costs seconds, since the open words are
fixed, and leaves their meaning alone.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F

from lexical_sae.model.heads import Head
from lexical_sae.training.reference import Reference

RATE = 1e-3


def fit_head(head: Head, reference: Reference, passes: int, seed: int) -> float:
    """Train `head` alone, the rate falling to 0; returns the loss of the last pass."""
    optimizer = torch.optim.AdamW(head.parameters(), lr=RATE, weight_decay=0.0)
    generator = torch.Generator().manual_seed(seed)
    steps, step, loss_sum = passes * len(reference.batches), 0, 0.0
    for _ in range(passes):
        loss_sum = 0.0
        for place in torch.randperm(len(reference.batches), generator=generator).tolist():
            batch = reference.batches[place]
            loss = F.cross_entropy(head(batch.open_words), batch.labels)
            optimizer.zero_grad()
            loss.backward()
            for group in optimizer.param_groups:
                group["lr"] = RATE * (1 - step / steps)
            optimizer.step()
            loss_sum += float(loss.detach())
            step += 1
    for parameter in head.parameters():
        parameter.grad = None
    return loss_sum / max(1, len(reference.batches))
