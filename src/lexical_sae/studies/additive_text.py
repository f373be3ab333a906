"""A text whose logits are a plain sum over features, as a game that explainers are judged by."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np

from lexical_sae.evaluation.compared import Contest, Scorer
from lexical_sae.evaluation.faithfulness import probability
from lexical_sae.evaluation.peers import random_scores
from lexical_sae.evaluation.perturbation import Floats, Masks, limits


class AdditiveText:
    """logits = Σ parts + bias, parts [C, n]; a feature is removed by leaving its part out."""

    def __init__(self, parts: Floats, bias: Floats) -> None:
        self.parts, self.bias = parts, bias
        self.label = int(self._logits(np.ones((1, self.n), dtype=np.bool_))[0].argmax())

    @property
    def n(self) -> int:
        return int(self.parts.shape[1])

    def _logits(self, masks: Masks) -> Floats:
        found: Floats = masks.astype(np.float64) @ self.parts.T + self.bias
        return found

    def __call__(self, masks: Masks) -> Floats:
        return probability(self._logits(masks), self.label)

    def keeps(self, masks: Masks) -> Masks:
        return np.asarray(self._logits(masks).argmax(1) == self.label)

    def contributions(self) -> Floats:
        """[n]: what each feature gives the label more than the runner-up."""
        logits = self._logits(np.ones((1, self.n), dtype=np.bool_))[0].copy()
        logits[self.label] = -np.inf
        found: Floats = self.parts[self.label] - self.parts[int(logits.argmax())]
        return found


def judged_texts(
    name: str, texts: Iterable[tuple[int, AdditiveText]], seed: int
) -> list[dict[str, Any]]:
    """The tables of a contest between the contributions, called `name`, and chance."""
    contest = Contest(name)
    for place, text in texts:
        if text.n < 2:
            continue
        draw = partial(random_scores, text.n, seed + place)
        scorers: dict[str, Scorer] = {name: text.contributions, "random": draw}
        contest.add(text, limits(text, text.n), scorers, text.keeps)
    return [
        {"columns": table.columns, "rows": table.rows}
        for table in (contest.table(name), contest.removability(name))
    ]
