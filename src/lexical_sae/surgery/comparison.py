"""Ways to treat a model, side by side: accuracy, gaps, what still leaks, what else changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lexical_sae.evaluation.bootstrap import mean_estimate
from lexical_sae.model.state import CircuitState
from lexical_sae.report.finding import Cell, Estimate, FindingTable
from lexical_sae.surgery.fairness import BiasReport, evaluate_bias
from lexical_sae.surgery.front import Rows
from lexical_sae.surgery.gap import flagged_rows, positive_scores
from lexical_sae.surgery.leak import Leak
from lexical_sae.surgery.rates import Bools


@dataclass(frozen=True, eq=False)
class Treated:
    """One way to treat the model, and what it decides on the rows that are measured."""

    name: str
    words: int  # that are cut out
    task_logits: Tensor  # [N, C] on the task's own rows
    biased_logits: Tensor  # [M, C] on the rows with groups
    leaks: tuple[Leak, ...] = ()


@dataclass(frozen=True)
class Compared:
    name: str
    words: int
    accuracy: Estimate  # on the task's own rows
    bias: BiasReport
    leaks: tuple[Leak, ...]
    changed_outside: float  # share of the task's rows without the concept that are decided anew


def compare_treatments(
    treated: Sequence[Treated],
    task: Rows,
    concept: Bools,
    biased: Rows,
    groups: Mapping[str, Bools],
    positive: Sequence[int],
    seed: int = 0,
) -> list[Compared]:
    """The first is the baseline that changes are counted against. `concept` [N] marks the task's
    rows that hold it."""
    gold = np.isin(biased.labels.numpy(), list(positive))
    before = treated[0].task_logits.argmax(-1)
    outside = torch.from_numpy(~concept)
    found = []
    for one in treated:
        decided = one.task_logits.argmax(-1)
        right = (decided == task.labels).double().numpy()
        changed = (decided != before)[outside].double()
        scores = positive_scores(one.biased_logits, positive)
        said = flagged_rows(one.biased_logits, positive)
        found.append(
            Compared(
                one.name,
                one.words,
                mean_estimate(right, seed),
                evaluate_bias(scores, gold, groups, said=said, seed=seed),
                one.leaks,
                float(changed.mean()) if len(changed) else 0.0,
            )
        )
    return found


def comparison_table(found: Sequence[Compared]) -> FindingTable:
    columns = (
        *("treatment", "words cut", "accuracy, %", "FPR, %", "FNR, %"),
        *("mean FPR gap, points", "from", "to", "mean FNR gap, points"),
        *("worst group", "its FPR gap, points", "leak, linear AUC", "leak, mlp AUC"),
        "other decisions changed, %",
    )
    return FindingTable("Treatments compared", columns, tuple(_row(one) for one in found))


def _row(one: Compared) -> tuple[Cell, ...]:
    bias = one.bias
    worst = next((group for group in bias.groups if group.name == bias.worst_group), None)
    leak = {probe.probe: probe.auc.value for probe in one.leaks if probe.source == "open words"}
    return (
        *(one.name, one.words, _percent(one.accuracy.value)),
        *(_percent(bias.fpr.value), _percent(bias.fnr.value)),
        *(_percent(v) for v in (bias.mean_fpr_gap.value, bias.mean_fpr_gap.low)),
        *(_percent(v) for v in (bias.mean_fpr_gap.high, bias.mean_fnr_gap.value)),
        bias.worst_group,
        None if worst is None else _percent(worst.fpr_gap.value),
        *(leak.get("linear"), leak.get("mlp")),
        _percent(one.changed_outside),
    )


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
