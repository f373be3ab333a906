"""Ways to treat a model, side by side: accuracy, gaps, what still leaks, what else changed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from lexical_sae.evaluation.bootstrap import mean_estimate
from lexical_sae.model.state import CircuitState
from lexical_sae.report.finding import Cell, Estimate, FindingTable
from lexical_sae.surgery.effect import after_removal
from lexical_sae.surgery.fairness import DRAWS, BiasReport, estimate, evaluate_bias, mean_fpr_gaps
from lexical_sae.surgery.front import Step
from lexical_sae.surgery.gap import flagged_rows, positive_scores
from lexical_sae.surgery.leak import Leak
from lexical_sae.surgery.meters import Rows
from lexical_sae.surgery.rates import Bools, Floats, Frames, Weights, bootstrap_weights, divided


@dataclass(frozen=True, eq=False)
class Treated:
    """One way to treat the model, and what it decides on the rows that are measured."""

    name: str
    words: int  # that are cut out
    validation_accuracy: float  # where treatments are matched by
    task_logits: Tensor  # [N, C] on the task's own rows
    biased_logits: Tensor  # [M, C] on the rows with groups
    leaks: tuple[Leak, ...] = ()


@dataclass(frozen=True)
class Compared:
    name: str
    words: int
    accuracy: Estimate  # on the task's own rows
    bias: BiasReport
    gap_fall: Estimate  # share of the baseline's mean FPR gap that is gone
    leaks: tuple[Leak, ...]
    changed_outside: float  # share of the task's rows without the concept that are decided anew


@dataclass(frozen=True, eq=False)
class Gaps:
    """The rows that gaps are measured on; differences between treatments are of the same resampled
    rows."""

    labels: Tensor  # [M]
    groups: Mapping[str, Bools]
    positive: Sequence[int]
    frames: Frames | None = None  # [M] rows that are resampled together
    seed: int = 0

    @cached_property
    def gold(self) -> Bools:
        found: Bools = np.isin(self.labels.numpy(), list(self.positive))
        return found

    @cached_property
    def weights(self) -> Weights:
        return bootstrap_weights(len(self.labels), DRAWS, self.seed, self.frames)

    def draws(self, logits: Tensor) -> Floats:
        """[1 + draws]: the mean FPR gap of these decisions."""
        said = flagged_rows(logits, self.positive)
        return mean_fpr_gaps(said, self.gold, self.groups, self.weights)

    def report(self, logits: Tensor) -> BiasReport:
        scores, said = positive_scores(logits, self.positive), flagged_rows(logits, self.positive)
        return evaluate_bias(
            scores, self.gold, self.groups, said=said, frames=self.frames, seed=self.seed
        )


def compare_treatments(
    treated: Sequence[Treated], task: Rows, concept: Bools, gaps: Gaps
) -> list[Compared]:
    """The first is the baseline that changes are counted against. `concept` [N] marks the task's
    rows that hold it."""
    first = gaps.draws(treated[0].biased_logits)
    before = treated[0].task_logits.argmax(-1)
    outside = torch.from_numpy(~concept)
    found = []
    for one in treated:
        decided = one.task_logits.argmax(-1)
        right = (decided == task.labels).double().numpy()
        changed = (decided != before)[outside].double()
        left = divided(gaps.draws(one.biased_logits), first)
        found.append(
            Compared(
                one.name,
                one.words,
                mean_estimate(right, gaps.seed),
                gaps.report(one.biased_logits),
                estimate(1 - left),
                one.leaks,
                float(changed.mean()) if len(changed) else 0.0,
            )
        )
    return found


@dataclass(frozen=True)
class Duel:
    """The cut against another treatment, with as many words as leave it the other's accuracy."""

    other: str
    words: int
    accuracy: tuple[float, float]  # of both, on validation rows
    gap: tuple[float, float]  # of both
    difference: Estimate  # the cut's gap minus the other's

    @property
    def verdict(self) -> str:
        if self.difference.high is not None and self.difference.high < 0:
            return "surgery is ahead"
        if self.difference.low is not None and self.difference.low > 0:
            return "surgery is behind"
        return "no difference is shown"


def duel(other: Treated, path: Sequence[Step], start: float, rows: Rows, gaps: Gaps) -> Duel:
    """`start` is the accuracy without a cut; `rows` are those that gaps are measured on."""
    accuracies = [start, *(step.accuracy for step in path)]
    enough = [k for k, found in enumerate(accuracies) if found >= other.validation_accuracy]
    words = max(enough) if enough else accuracies.index(max(accuracies))
    cut = after_removal(rows.state, [step.coordinate for step in path[:words]]).logits
    ours, theirs = gaps.draws(cut), gaps.draws(other.biased_logits)
    return Duel(
        other.name,
        words,
        (accuracies[words], other.validation_accuracy),
        (float(ours[0]), float(theirs[0])),
        estimate(ours - theirs),
    )


def comparison_table(found: Sequence[Compared]) -> FindingTable:
    """What each treatment brings and costs."""
    rows = tuple(
        (
            *(one.name, one.words, *_percents(one.accuracy)),
            *_percents(one.bias.mean_fpr_gap),
            _percent(one.changed_outside),
        )
        for one in found
    )
    columns = (
        *("treatment", "words cut", "accuracy, %", "from", "to"),
        *("mean FPR gap, points", "from ", "to ", "other decisions changed, %"),
    )
    return FindingTable("Treatments compared", columns, rows)


def rates_table(found: Sequence[Compared]) -> FindingTable:
    """Beside the comparison, since one table of both is wider than a page."""
    rows: list[tuple[Cell, ...]] = []
    for one in found:
        bias = one.bias
        worst = next((group for group in bias.groups if group.name == bias.worst_group), None)
        rows.append(
            (
                *(one.name, _percent(bias.fpr.value), _percent(bias.fnr.value)),
                *_percents(one.gap_fall),
                *(_percent(bias.mean_fnr_gap.value), bias.worst_group),
                None if worst is None else _percent(worst.fpr_gap.value),
            )
        )
    columns = (
        *("treatment", "FPR, %", "FNR, %", "mean FPR gap gone, %", "from", "to"),
        *("mean FNR gap, points", "worst group", "its FPR gap, points"),
    )
    return FindingTable("Rates", columns, tuple(rows))


def leaks_table(found: Sequence[Compared]) -> FindingTable:
    """How well each probe tells the concept, before and after each treatment."""
    rows: list[tuple[Cell, ...]] = []
    for place, old in enumerate(found[0].leaks):
        for one in found[1:]:
            new = one.leaks[place]
            what = f"{new.source}, {new.probe}"
            rows.append((what, one.name, *_bounds(old.auc), *_bounds(new.auc)))
    columns = ("probe of", "treatment", "AUC before", "from", "to", "AUC after", "from ", "to ")
    return FindingTable("Leaks", columns, tuple(rows))


def _bounds(auc: Estimate) -> list[float | None]:
    return [None if v is None else round(v, 3) for v in (auc.value, auc.low, auc.high)]


def _percents(found: Estimate) -> list[float | None]:
    return [_percent(v) for v in (found.value, found.low, found.high)]


def _percent(value: float | None) -> float | None:
    return None if value is None else round(100 * value, 2)


def random_words_like(
    state: CircuitState, coordinates: Sequence[int], seed: int, avoid: Sequence[int] = ()
) -> list[int]:
    """For each word another that is open about as often, drawn at random: the control of a cut."""
    words = state.open_words
    times = torch.bincount(words.word, minlength=words.dictionary_size)
    draw, taken, found = np.random.default_rng(seed), {*coordinates, *avoid}, []
    order = torch.argsort(times, stable=True)
    place = torch.empty_like(order)
    place[order] = torch.arange(len(order))
    for v in coordinates:
        around = (place[v] + torch.arange(-25, 26)).clamp(0, len(order) - 1)
        near = dict.fromkeys(order[around].tolist())
        free = [w for w in near if w not in taken and times[w] > 0]
        if free:
            found.append(int(draw.choice(free)))
            taken.add(found[-1])
    return found


def random_text_words_like(texts: Sequence[str], words: Sequence[str], seed: int) -> list[str]:
    """For each word that stands in the texts one of the five others whose number of texts is
    nearest to its own."""
    held = [set(re.findall(r"[^\W_]+", text.casefold())) for text in texts]
    times = Counter(word for some in held for word in sorted(some))
    draw, taken, found = np.random.default_rng(seed), set(words), []
    for word in words:
        free = [other for other in times if word in times and other not in taken]
        near = sorted(free, key=lambda other: (abs(times[other] - times[word]), other))[:5]
        if near:
            found.append(str(draw.choice(near)))
            taken.add(found[-1])
    return found
