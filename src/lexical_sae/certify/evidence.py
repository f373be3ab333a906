"""What groups of words may carry, and what they do: evidence policies and reason codes.

What decides is the label's logit against the runner-up's, so contributions are to that
difference: a word that only pushes the rival down counts. A group's share is its part of them: of
all in absolute value for a limit, which must not be met by cancelling; of those that speak for
the label for a reason code. Both are exact, since the contributions are. A word that only
switches hidden units for other words contributes nothing and is not seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from lexical_sae.attribution.contributions import compute_attribution_tensor, sum_by_row
from lexical_sae.model.state import CircuitState

if TYPE_CHECKING:
    from lexical_sae.model.dictionary import Dictionary


@dataclass(frozen=True)
class WordGroup:
    """Words under one name. For a limit, `share` is what they may carry at most."""

    name: str
    words: tuple[str, ...]
    share: float = 1.0


@dataclass(frozen=True)
class Breach:
    """A group that carries more of a decision than its limit allows."""

    group: str
    share: float
    limit: float

    def __str__(self) -> str:
        return (
            f"{self.group} carries {100 * self.share:.1f} % of the evidence, more than the "
            f"{100 * self.limit:g} % allowed"
        )


@dataclass(frozen=True)
class CodeShare:
    """A reason code and the share of the evidence for the label that its words hold."""

    code: str
    share: float

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class Evidence:
    """Limits and codes for one dictionary; words match whatever their case."""

    def __init__(
        self,
        dictionary: Dictionary,
        *,
        limits: Sequence[WordGroup] = (),
        codes: Sequence[WordGroup] = (),
    ) -> None:
        self.limits, self.codes = tuple(limits), tuple(codes)
        coordinates = dictionary.casefolded
        self.unknown = tuple(
            word
            for group in (*limits, *codes)
            for word in group.words
            if word.casefold() not in coordinates
        )
        self._limit_members = _members(self.limits, coordinates, len(dictionary))
        self._code_members = _members(self.codes, coordinates, len(dictionary))

    @torch.no_grad()
    def judge(self, state: CircuitState) -> list[Judgement]:
        """One judgement per row, about its predicted label."""
        open_words = state.open_words
        contribution = _contrast(state).double()  # [P]
        held = _shares(contribution.abs(), self._limit_members, state)
        spoken = _shares(contribution.clamp(min=0), self._code_members, state)
        return [
            Judgement(self._breaches(held[row].tolist()), self._codes(spoken[row].tolist()))
            for row in range(open_words.rows)
        ]

    def _breaches(self, shares: Sequence[float]) -> tuple[Breach, ...]:
        return tuple(
            Breach(group.name, share, group.share)
            for group, share in zip(self.limits, shares, strict=True)
            if share > group.share
        )

    def _codes(self, shares: Sequence[float]) -> tuple[CodeShare, ...]:
        """Largest first, only those that say something."""
        found = (
            CodeShare(group.name, share)
            for group, share in zip(self.codes, shares, strict=True)
            if share > 0
        )
        return tuple(sorted(found, key=lambda code: -code.share))


@dataclass(frozen=True)
class Judgement:
    """Which limits a decision breaks (then it abstains), and its reason codes."""

    breaches: tuple[Breach, ...]
    codes: tuple[CodeShare, ...]

    @property
    def reason(self) -> str:
        """Why the decision abstains; empty if it does not."""
        return "; ".join(str(breach) for breach in self.breaches)


def _contrast(state: CircuitState) -> Tensor:
    """[P]: contributions to the predicted class's logit minus the runner-up's."""
    predicted = state.predicted
    own = compute_attribution_tensor(state, row_classes=predicted)
    if state.head.classes < 2:
        return own
    others = state.logits.scatter(-1, predicted.unsqueeze(-1), -torch.inf)
    return own - compute_attribution_tensor(state, row_classes=others.argmax(-1))


def _members(groups: Sequence[WordGroup], coordinates: dict[str, list[int]], size: int) -> Tensor:
    """[V, G]: 1 where a word belongs to a group."""
    members = torch.zeros(size, len(groups), dtype=torch.float64)
    for index, group in enumerate(groups):
        for word in group.words:
            members[coordinates.get(word.casefold(), []), index] = 1.0
    return members


def _shares(size: Tensor, members: Tensor, state: CircuitState) -> Tensor:
    """[rows, G]: the groups' part of Σ size over each row's open words; 0 if there is nothing."""
    open_words = state.open_words
    word, row = open_words.word.cpu(), open_words.row.cpu()
    total = sum_by_row(size.cpu(), row, open_words.rows)
    held = sum_by_row(size.cpu()[:, None] * members[word], row, open_words.rows)
    return torch.where(total > 0, total, torch.ones_like(total)).reciprocal()[:, None] * held
