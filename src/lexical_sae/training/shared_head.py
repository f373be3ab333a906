"""Words of like meaning share what the head learns, while it trains.

The head has a row of weights for every word of the dictionary, and a row learns only from texts
that open its word: most are seen a few times or never, and what a new text opens is read by rows
that are still noise. With sharing the table is W1 = D + c · Ê A: D is the table of before, and A
maps the word's embedding (its decoder row, centred, of length 1) to the hidden units. A learns from
every open word, so a rare word is read as its neighbours are. After training both are added up into
one plain table: the model that is saved, its sums and its proofs know nothing of it.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from lexical_sae.model.lexical_sae import LexicalSAE

START = 0.02  # spread of the table's first values, as without sharing


class _Shared(nn.Module):
    """D [V, width] → D + c · Ê A."""

    meaning: Tensor

    def __init__(self, embedding: Tensor, width: int, scale: float, seed: int) -> None:
        super().__init__()
        meaning = embedding.detach() - embedding.detach().mean(0)
        meaning = meaning / meaning.norm(dim=1, keepdim=True).clamp(min=1e-6)
        # made again from the untrained dictionary, so it need not be saved
        self.register_buffer("meaning", meaning, persistent=False)  # Ê [V, H]
        generator = torch.Generator().manual_seed(seed)
        first = torch.randn(embedding.shape[1], width, generator=generator) * START / scale
        self.shared = nn.Parameter(first.to(embedding))  # A [H, width]
        self.scale = scale

    def forward(self, own: Tensor) -> Tensor:
        return torch.addmm(own, self.meaning, self.shared, alpha=self.scale)


def share_head(model: LexicalSAE, scale: float, seed: int) -> None:
    """Let the head's table share by meaning from here on; its own part starts at 0."""
    name = _table_name(model)
    table = model.head.word_table()
    with torch.no_grad():
        table.zero_()
    shared = _Shared(model.lexical.weight, table.shape[1], scale, seed)
    parametrize.register_parametrization(model.head, name, shared)


@torch.no_grad()
def fold_head(model: nn.Module) -> None:
    """Add both parts up into one plain table; nothing happens where nothing is shared."""
    if isinstance(model, LexicalSAE) and parametrize.is_parametrized(model.head):
        name = _table_name(model)
        parametrize.remove_parametrizations(model.head, name, leave_parametrized=True)


def computed_once() -> AbstractContextManager[None]:
    """The table is added up once within this block, however often it is read."""
    return parametrize.cached()


def _table_name(model: LexicalSAE) -> str:
    return "weight" if model.config.head == "linear" else "W1"
