"""Balance: every sense of a word is used, so that none is left without contexts."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lexical_sae.model.open_words import Routes
from lexical_sae.training.distributed import sum_over_processes

# Contexts that the running load remembers: a batch holds few of a word, and to ask for balance
# among those alone would ask every single context to be undecided.
MEMORY = 64.0


class SenseLoads(nn.Module):
    """load[k, m]: the share of word k's contexts that goes to its sense m, softly."""

    load: Tensor

    def __init__(self, words: int, senses: int) -> None:
        super().__init__()
        self.register_buffer("load", torch.full((words, senses), 1 / senses))

    def forward(self, routes: Routes) -> Tensor:
        """Mean over words of (M·Σ load² − 1)/(M − 1): 0 if all senses carry the same, 1 if one
        carries everything. The gradient goes through this batch's contexts."""
        words, senses = self.load.shape
        soft = routes.soft.to(self.load.dtype)
        total = self.load.new_zeros(words, senses).index_add(0, routes.word, soft)
        count = self.load.new_zeros(words).index_add(0, routes.word, torch.ones_like(soft[:, 0]))
        total, count = sum_over_processes(total), sum_over_processes(count)
        load = (MEMORY * self.load + total) / (MEMORY + count[:, None])
        if self.training:
            self.load.copy_(load.detach())
        return ((senses * load.square().sum(1) - 1) / (senses - 1)).mean()
