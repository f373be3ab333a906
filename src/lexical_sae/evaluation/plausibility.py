"""Step 10: do people mark the same words?

Human rationales are marks on the words of a text. Scores of the same words are judged by the area
under precision and recall, and by F1 when as many words are taken as people marked.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lexical_sae.evaluation.perturbation import Floats, falling

# columns that hold a mark for each word of `tokens`, as the named datasets have them
COLUMNS = ("rationale", "rationale_majority")


@dataclass(frozen=True)
class Agreement:
    auprc: float
    f1: float


def average_precision(marked: NDArray[np.bool_], scores: Floats) -> float:
    """Σ (R_i − R_(i−1)) P_i over the thresholds of the scores; words of one score come together."""
    order = falling(scores)
    hits = np.cumsum(marked[order])
    last = np.append(np.diff(scores[order]) != 0, True)  # ends of groups of equal scores
    precision = hits[last] / (np.flatnonzero(last) + 1)
    recall = hits[last] / marked.sum()
    return float((np.diff(recall, prepend=0.0) * precision).sum())


def agreement(marked: NDArray[np.bool_], scores: Floats) -> Agreement | None:
    """None where people marked nothing or everything, so that no choice can be wrong."""
    count = int(marked.sum())
    if count == 0 or count == len(marked):
        return None
    chosen = falling(scores)[:count]
    return Agreement(average_precision(marked, scores), float(marked[chosen].mean()))


def token_scores(spans: list[tuple[int, int]], words: list[tuple[int, int, float]]) -> Floats:
    """[tokens]: each human token gets the scores of the model's words by their shared characters.

    `spans` are the characters of the tokens, `words` start, end and score of the model's words.
    """
    found = np.zeros(len(spans))
    for start, end, score in words:
        length = max(1, end - start)
        for j, (left, right) in enumerate(spans):
            shared = min(end, right) - max(start, left)
            if shared > 0:
                found[j] += score * shared / length
    return found
