"""Long texts through both models, whole and cut: who is right, and where our reasons come from."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lexical_sae.attribution.explain import explained_batches
from lexical_sae.attribution.explanation import Explanation
from lexical_sae.evaluation.dense_states import dense_states, dense_window_logits
from lexical_sae.evaluation.reading import read_texts
from lexical_sae.studies.needles import Haystack

if TYPE_CHECKING:
    from lexical_sae.model.dense_twin import DenseTwin
    from lexical_sae.model.lexical_sae import LexicalSAE

WHOLE, CUT = "ours, windows", "ours, cut"
TWIN_MEAN, TWIN_MAX = "twin, mean over windows", "twin, most certain window"
TWIN_CUT = "twin, cut"
ARMS = (WHOLE, CUT, TWIN_MEAN, TWIN_MAX, TWIN_CUT)
AT_ONCE = 16  # texts

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Pointing:
    """Where the reasons of our decision stand. Undefined (NaN) if nothing speaks for it."""

    share: float  # of what speaks for the label, the part that words of the needle opened
    top: float  # 1 if the word that speaks for it most was opened in the needle


@dataclass(frozen=True, eq=False)
class Decisions:
    """What every arm says of N texts of one length."""

    logits: dict[str, Floats]  # arm: [N, C]
    seconds: dict[str, float]  # arm: for all texts together
    open_words: Ints  # [N] of ours in windows
    explanations: tuple[Explanation, ...]  # [N] of ours in windows

    def predicted(self, arm: str, filler: Decisions | None = None) -> Ints:
        """[N] labels; with `filler` of what the logits are above those of filler alone on average,
        so that a leaning towards one class, whatever the text, counts for nothing."""
        logits = self.logits[arm]
        above = logits if filler is None else logits - filler.logits[arm].mean(0)
        labels: Ints = above.argmax(1)
        return labels


def decide_all(model: LexicalSAE, twin: DenseTwin, texts: Sequence[str]) -> Decisions:
    """Every arm; ours in windows is explained too, which its seconds include."""
    logits: dict[str, Floats] = {}
    seconds: dict[str, float] = {}
    clock = time.perf_counter()
    found: dict[int, Explanation] = {}
    open_words = np.zeros(len(texts), dtype=np.int64)
    logits[WHOLE] = np.zeros((len(texts), len(model.config.labels)))
    model.read_windows()
    try:
        for batch in explained_batches(model, texts, batch_size=AT_ONCE):
            found.update(zip(batch.index, batch.explanations, strict=True))
            open_words[list(batch.index)] = batch.state.open_words.counts().cpu().numpy()
            logits[WHOLE][list(batch.index)] = batch.state.logits.cpu().numpy()
    finally:
        model.read_windows(False)
    seconds[WHOLE], clock = time.perf_counter() - clock, time.perf_counter()
    logits[CUT] = read_texts(model, texts, [0] * len(texts)).state.logits.double().cpu().numpy()
    seconds[CUT], clock = time.perf_counter() - clock, time.perf_counter()
    each = [
        windows.double()
        for start in range(0, len(texts), AT_ONCE)
        for windows in dense_window_logits(twin, texts[start : start + AT_ONCE])
    ]
    # the twin's head is linear, so this is what it says of the mean of the windows' states
    logits[TWIN_MEAN] = torch.stack([windows.mean(0) for windows in each]).numpy()
    logits[TWIN_MAX] = torch.stack([most_certain(windows) for windows in each]).numpy()
    # one reading serves both ways to join the windows
    seconds[TWIN_MEAN] = seconds[TWIN_MAX] = time.perf_counter() - clock
    clock = time.perf_counter()
    with torch.no_grad():
        logits[TWIN_CUT] = twin.head(dense_states(twin, texts)).double().numpy()
    seconds[TWIN_CUT] = time.perf_counter() - clock
    explanations = tuple(found[row] for row in range(len(texts)))
    return Decisions(logits, seconds, open_words, explanations)


def most_certain(logits: Tensor) -> Tensor:
    """[C]: those of the window (logits [W, C]) whose probability for its label is the largest."""
    return logits[logits.double().softmax(-1).amax(-1).argmax()]


def pointing(explanation: Explanation, hay: Haystack) -> Pointing:
    """How much of what speaks for the label comes from words of the needle."""
    speaks = [word for word in explanation.vocabulary if word.contribution > 0]
    if not speaks:
        return Pointing(float("nan"), float("nan"))
    inside = [hay.start <= word.source.start < hay.end for word in speaks]
    total = sum(word.contribution for word in speaks)
    part = sum(word.contribution for word, here in zip(speaks, inside, strict=True) if here)
    # largest first by size, so the first that speaks for the label is the one that does most
    return Pointing(part / total, float(inside[0]))


def by_needle(values: Sequence[float] | Floats, hay: Sequence[Haystack]) -> Floats:
    """[needles]: means over the places of each needle, which are not independent of each other;
    what is undefined is left out."""
    numbers = np.array([one.needle for one in hay], dtype=np.int64)
    found, known = np.asarray(values, dtype=np.float64), ~np.isnan(np.asarray(values, float))
    count = np.bincount(numbers[known])
    total = np.bincount(numbers[known], found[known])
    means: Floats = total[count > 0] / count[count > 0]
    return means
