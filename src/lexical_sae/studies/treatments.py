"""The treatments of a surgery study: nothing, the cut, LEACE, both, and random words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

from lexical_sae.evaluation.reading import read_texts
from lexical_sae.studies.surgery_subject import SurgerySubject
from lexical_sae.surgery.comparison import (
    Compared,
    Treated,
    compare_treatments,
    random_words_like,
)
from lexical_sae.surgery.effect import after_removal
from lexical_sae.surgery.erasure import (
    dense_slice,
    erasing,
    fit_leace,
    frequent_words,
    logits_after_slice,
    pooled_states,
)
from lexical_sae.surgery.front import Rows
from lexical_sae.surgery.leak import Leak, measure_leak, open_word_table

CONTROLS = 3  # draws of random words

Probes = Callable[[Any, Any], tuple[Leak, ...]]


def compared_treatments(study: SurgerySubject, cut: Sequence[int]) -> list[Compared]:
    """Every treatment on the measured rows and the task's test rows."""
    study.console.print("comparing treatments", style="dim")
    marks = study.concept_columns()
    concept = [study.concept(data) for data in (study.train, study.task_test)]
    states = (study.fitted.state, study.test.state, study.measured.state)

    def probes(train: Any, test: Any) -> tuple[Leak, ...]:
        seed = study.config.seed
        return tuple(measure_leak("open words", train, concept[0], test, concept[1], seed=seed))

    def by_cut(name: str, words: Sequence[int]) -> Treated:
        fitted, test, measured = (after_removal(state, words) for state in states)
        leaks = probes(open_word_table(fitted), open_word_table(test))
        return Treated(name, len(words), test.logits, measured.logits, leaks)

    def by_leace(name: str, words: Sequence[int], marks: Tensor) -> Treated:
        fitted, test, measured = (after_removal(state, words) for state in states)
        chosen = frequent_words(fitted)
        eraser = fit_leace(dense_slice(fitted, chosen), marks)
        leaks = probes(eraser(dense_slice(fitted, chosen)), eraser(dense_slice(test, chosen)))
        on_test = logits_after_slice(test, chosen, eraser)
        return Treated(
            name, len(words), on_test, logits_after_slice(measured, chosen, eraser), leaks
        )

    treated = [by_cut("baseline", ()), by_cut("surgery", cut)]
    if marks is not None:
        treated.append(by_leace("LEACE on open words", (), marks))
        treated.append(_by_hidden_leace(study, marks, probes))
        treated.append(by_leace("surgery and LEACE", cut, marks))
    for draw in range(CONTROLS if cut else 0):
        words = random_words_like(study.choosing.state, cut, study.config.seed + draw)
        treated.append(by_cut(f"random words, draw {draw + 1}", words))
    return compare_treatments(
        treated,
        Rows(study.test.state, study.test.labels),
        concept[1],
        Rows(study.measured.state, study.measured.labels),
        study.data.groups(study.data.measured),
        study.positive,
        study.config.seed,
    )


def _by_hidden_leace(study: SurgerySubject, marks: Tensor, probes: Probes) -> Treated:
    """Fitted on the pooled hidden state, applied at every position before words open."""
    model = study.model
    eraser = fit_leace(pooled_states(model, study.train.texts), marks)
    with erasing(model, eraser):
        fitted, test, measured = (
            read_texts(model, data.texts, data.labels).state
            for data in (study.train, study.task_test, study.data.measured)
        )
    leaks = probes(open_word_table(fitted), open_word_table(test))
    return Treated("LEACE on hidden states", 0, test.logits, measured.logits, leaks)
