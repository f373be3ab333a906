"""Step 5: does the decision go when the words go that are said to carry it?

At the open words a word is removed by closing it; the head is then computed again. Nothing is
retrained and no text is touched, so the curves are those of the model itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lexical_sae.evaluation.bootstrap import mean_estimate
from lexical_sae.evaluation.head_problem import HeadProblem, head_problem
from lexical_sae.evaluation.perturbation import (
    FRACTIONS,
    Game,
    Limits,
    Masks,
    Removal,
    falling,
    limits,
    removal,
    top_count,
)
from lexical_sae.evaluation.reading import Reading
from lexical_sae.report.finding import Cell, Curve, Estimate, Finding, FindingTable

Floats = NDArray[np.float64]


def probability(logits: Floats, label: int) -> Floats:
    """[m, C] → [m] of one class."""
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    found: Floats = shifted[:, label] / shifted.sum(axis=1)
    return found


def head_game(problem: HeadProblem) -> Game:
    """The probability of the decided label as a function of the open words that stay."""

    def play(masks: Masks) -> Floats:
        return probability(problem.logits(masks.astype(np.float64)), problem.winner)

    return play


def head_keeps(problem: HeadProblem) -> Callable[[Masks], NDArray[np.bool_]]:
    """Whether the decided label still wins, as a function of the open words that stay."""

    def keeps(masks: Masks) -> NDArray[np.bool_]:
        won: NDArray[np.bool_] = (
            problem.logits(masks.astype(np.float64)).argmax(1) == problem.winner
        )
        return won

    return keeps


def runner_up(problem: HeadProblem) -> int | None:
    """The label that comes next; None if there is only one."""
    logits, rivals = problem.logits(np.ones(problem.words)), problem.rivals()
    return max(rivals, key=lambda c: float(logits[c])) if rivals else None


def problems_of(reading: Reading) -> Iterator[tuple[int, HeadProblem]]:
    """Every decision with at least one open word, and its place."""
    place = 0
    for state, labels in reading.chunks(256):
        for row in range(len(labels)):
            problem = head_problem(state, row)
            if problem.words:
                yield place + row, problem
        place += len(labels)


@dataclass(frozen=True, eq=False)
class WordRemoval:
    """Each open word removed alone: the change of the decided logit as −A says, and as it is."""

    predicted: Floats  # [n]
    realised: Floats  # [n]
    units_flipped: Floats  # [n] hidden units that switch on or off


def remove_each(problem: HeadProblem) -> WordRemoval:
    n = problem.words
    masks = 1.0 - np.eye(n)
    whole = problem.logits(np.ones((1, n)))[0, problem.winner]
    realised = problem.logits(masks)[:, problem.winner] - whole
    return WordRemoval(-problem.contributions(), realised, problem.switched(masks))


@dataclass(frozen=True, eq=False)
class TextFaithfulness:
    """What one decision gives to the means."""

    place: int
    curve: Removal
    limits: Limits
    flips: tuple[bool, ...]  # [fractions] whether another label wins without the top words
    removed: WordRemoval


def limits_of(
    reading: Reading, advance: Callable[[int], None] = lambda rows: None
) -> dict[int, Limits]:
    """The limits of AOPC of every decision with an open word, by its place."""
    found = {}
    for place, problem in problems_of(reading):
        found[place] = limits(head_game(problem), problem.words)
        advance(1)
    return found


def faithfulness_of(
    problem: HeadProblem, place: int, between: Limits, fractions: Sequence[float] = FRACTIONS
) -> TextFaithfulness:
    game, order = head_game(problem), falling(problem.contributions())
    n = problem.words
    flips = []
    for fraction in fractions:
        left = np.ones(n)
        left[order[: top_count(n, fraction)]] = 0.0
        flips.append(int(problem.logits(left).argmax()) != problem.winner)
    return TextFaithfulness(
        place, removal(game, order), between, tuple(flips), remove_each(problem)
    )


def measure_faithfulness(
    reading: Reading,
    between: Mapping[int, Limits],
    fractions: tuple[float, ...] = FRACTIONS,
    seed: int = 0,
) -> Finding:
    """ERASER's measures, NAOPC and removability at the open words, over all decisions that have
    any; `between` are their limits."""
    found: list[TextFaithfulness] = []
    for place, problem in problems_of(reading):
        found.append(faithfulness_of(problem, place, between[place], fractions))
    empty = reading.rows - len(found)
    notes = [f"{reading.rows:,} decisions"]
    if empty:
        notes.append(f"{empty:,} of them open no word and are left out")
    if not found:
        why = "no decision that is taken apart opens a word"
        names = ("comprehensiveness", "sufficiency", "naopc", "naopc_reversed", "flip_rate_at_10")
        return Finding({name: Estimate(None, why=why) for name in names}, notes=tuple(notes))
    exact = sum(one.limits.exact for one in found)
    notes.append(
        f"limits of AOPC by all subsets for {exact:,} of them, by a beam search for "
        f"{len(found) - exact:,}"
    )
    comprehensiveness = _table(found, fractions, Removal.comprehensiveness)  # [texts, fractions]
    sufficiency = _table(found, fractions, Removal.sufficiency)
    flips = np.array([one.flips for one in found], dtype=np.float64)
    naopc = _defined([one.limits.normalised(one.curve.aopc) for one in found])
    backwards = _defined([one.limits.normalised(one.curve.reversed_aopc) for one in found])
    rows: list[tuple[Cell, ...]] = [
        (
            f"{100 * fraction:g} %",
            float(comprehensiveness[:, i].mean()),
            float(sufficiency[:, i].mean()),
            100 * float(flips[:, i].mean()),
        )
        for i, fraction in enumerate(fractions)
    ]
    columns = ("top words", "comprehensiveness", "sufficiency", "decisions flipped, %")
    curve = {
        "without the top words": _points(fractions, comprehensiveness),
        "the top words alone": _points(fractions, sufficiency),
    }
    at_ten = fractions.index(0.1)
    return Finding(
        metrics={
            "comprehensiveness": mean_estimate(comprehensiveness.mean(1), seed),
            "sufficiency": mean_estimate(sufficiency.mean(1), seed),
            "naopc": mean_estimate(naopc, seed),
            "naopc_reversed": mean_estimate(backwards, seed),
            "flip_rate_at_10": mean_estimate(flips[:, at_ten], seed),
            **_removal_metrics([one.removed for one in found], seed),
        },
        tables=(FindingTable("When words are closed", columns, tuple(rows)),),
        curves=(Curve("What the decision loses", "top words, %", "probability lost", curve),),
        worst=_worst(found, reading.names),
        notes=tuple(notes),
    )


def _table(
    found: Sequence[TextFaithfulness],
    fractions: Sequence[float],
    measure: Callable[[Removal, float], float],
) -> Floats:
    return np.array([[measure(one.curve, fraction) for fraction in fractions] for one in found])


def _points(fractions: Sequence[float], values: Floats) -> tuple[tuple[float, float], ...]:
    return tuple(
        (100 * fraction, float(values[:, i].mean())) for i, fraction in enumerate(fractions)
    )


def _defined(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def measure_removal(reading: Reading, seed: int = 0) -> dict[str, Estimate]:
    """How additive removal is, over all decisions that open a word: no limits are needed."""
    found = [remove_each(problem) for _, problem in problems_of(reading)]
    if found:
        return _removal_metrics(found, seed)
    why = "no decision that is taken apart opens a word"
    names = ("removal_error", "removal_correlation", "units_flipped")
    return {name: Estimate(None, why=why) for name in names}


def _removal_metrics(found: Sequence[WordRemoval], seed: int) -> dict[str, Estimate]:
    predicted = np.concatenate([one.predicted for one in found])
    realised = np.concatenate([one.realised for one in found])
    varied = predicted.std() > 0 and realised.std() > 0
    return {
        "removal_error": mean_estimate(
            [float(np.abs(one.predicted - one.realised).mean()) for one in found], seed
        ),
        "removal_correlation": Estimate(
            float(np.clip(np.corrcoef(predicted, realised)[0, 1], -1, 1)) if varied else None,
            why="" if varied else "no word changes anything",
        ),
        "units_flipped": mean_estimate([float(one.units_flipped.mean()) for one in found], seed),
    }


def _worst(found: Sequence[TextFaithfulness], names: Sequence[str]) -> tuple[dict[str, Cell], ...]:
    """The texts in which single removals differ most from what the contributions say."""

    def error(one: TextFaithfulness) -> float:
        return float(np.abs(one.removed.predicted - one.removed.realised).max())

    return tuple(
        {"text": names[one.place], "largest error of a removal": error(one)}
        for one in sorted(found, key=error, reverse=True)[:5]
    )
