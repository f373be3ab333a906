"""Which words make a gap: the exact parts of why a group's harmless rows are flagged.

The margin of a row is the mean logit of the positive classes minus that of the others, and so a sum
over its open words. The mean margin of a group's harmless rows minus that of the harmless rows
outside the group is then a sum over words too, to the last digit: no word is left out. (False
positives alone would not do: they are picked for their margin, so that any group would seem to
have a gap.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lexical_sae.attribution.contributions import compute_attribution_tensor
from lexical_sae.evaluation.reading import CHUNK_ROWS
from lexical_sae.model.state import CircuitState
from lexical_sae.surgery.rates import Bools


@dataclass(frozen=True, eq=False)
class GapParts:
    """The parts of one group's gap in the mean margin."""

    group: str
    rows: int  # harmless rows of the group
    flagged: int  # false positives among them
    others: int  # harmless rows outside it
    fpr_gap: float  # share flagged there minus share flagged outside
    difference: float  # of the mean margins; = Σ words + bias
    words: Tensor  # [V] mean contribution there minus mean contribution elsewhere
    bias: float

    @property
    def wider(self) -> Tensor:
        """[V]: by how much each word widens the gap. A group that is flagged less often than others
        has its gap from words that keep it from being flagged."""
        return self.words if self.fpr_gap >= 0 else -self.words

    def top(self, count: int) -> list[tuple[int, float]]:
        """(coordinate, part), the largest first, of the words that widen the gap."""
        order = torch.argsort(self.words, descending=True, stable=True)[:count].tolist()
        return [(v, float(self.words[v])) for v in order if self.words[v] > 0]


def direction_of(labels: Sequence[str], positive: Sequence[str]) -> Tensor:
    """[C]: what weighs each class's logit in the margin."""
    strange = [name for name in positive if name not in labels]
    if strange or not positive or len(set(positive)) >= len(labels):
        raise ValueError(
            f"The positive classes are {list(positive)}; expected some, but not all, of "
            f"{', '.join(labels)}."
        )
    chosen = torch.tensor([name in positive for name in labels], dtype=torch.float64)
    return chosen / chosen.sum() - (1 - chosen) / (1 - chosen).sum()


def flagged_rows(logits: Tensor, positive: Sequence[int]) -> Bools:
    """[N]: whether the decided class is a positive one."""
    found: Bools = np.isin(logits.detach().argmax(-1).numpy(), list(positive))
    return found


def positive_scores(logits: Tensor, positive: Sequence[int]) -> np.ndarray:
    """[N]: the probability of the positive classes together."""
    return logits.detach().double().softmax(-1)[:, list(positive)].sum(-1).numpy()


@torch.no_grad()
def decompose_gap(
    state: CircuitState,
    direction: Tensor,
    said: Bools,
    positive: Bools,
    groups: Mapping[str, Bools],
) -> list[GapParts]:
    """For each group that has harmless rows. `said` and `positive` [N]: flagged, and rightly."""
    harmless = ~positive
    weights, names, counts = [], [], []
    for name, rows in groups.items():
        inside, outside = rows & harmless, ~rows & harmless
        if not inside.any() or not outside.any():
            continue
        weights.append(inside / inside.sum() - outside / outside.sum())  # [N], a contrast of means
        names.append(name)
        flagged = (inside & said).sum()
        apart = float(said[inside].mean() - said[outside].mean())
        counts.append((int(inside.sum()), int(flagged), int(outside.sum()), apart))
    if not names:
        return []
    contrast = torch.from_numpy(np.stack(weights, 1))  # [N, G]
    words, bias, margins = _contrasted(state, direction, contrast)
    return [
        GapParts(name, *counts[g], float(margins[g]), words[:, g], float(bias[g]))
        for g, name in enumerate(names)
    ]


def _contrasted(
    state: CircuitState, direction: Tensor, contrast: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Σ over rows of contrast [N, G] times contributions [V, G], bias [G] and margin [G]."""
    rows, groups = contrast.shape
    words = torch.zeros(state.open_words.dictionary_size, groups, dtype=torch.float64)
    bias = torch.zeros(groups, dtype=torch.float64)
    for start in range(0, rows, CHUNK_ROWS):
        where = torch.zeros(rows, dtype=torch.bool)
        where[start : start + CHUNK_ROWS] = True
        part, weight = state.at_rows(where), contrast[where]
        contribution = compute_attribution_tensor(part).double() @ direction  # [P]
        open_words = part.open_words
        words.index_add_(0, open_words.word, contribution[:, None] * weight[open_words.row])
        bias += weight.T @ (part.b_eff.double() @ direction)
    return words, bias, contrast.T @ (state.logits.double() @ direction)
