"""The treatments of a surgery study: nothing, the cut, words left unread, LEACE, random words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from torch import Tensor

from lexical_sae.evaluation.reading import read_texts
from lexical_sae.model.lexical_sae import LexicalSAE
from lexical_sae.model.state import CircuitState
from lexical_sae.studies.surgery_subject import SurgerySubject
from lexical_sae.surgery.comparison import Treated, random_text_words_like, random_words_like
from lexical_sae.surgery.effect import after_removal
from lexical_sae.surgery.erasure import (
    Eraser,
    dense_slice,
    erasing,
    fit_leace,
    logits_after_slice,
    pooled_states,
    rows_after_slice,
    slice_words,
)
from lexical_sae.surgery.leak import Leak, measure_leak, sparse_rows
from lexical_sae.surgery.removal import forms_in_texts
from lexical_sae.surgery.selection import find_words
from lexical_sae.surgery.suppression import without_words
from lexical_sae.text.dataset import TextDataset

CONTROLS = 3  # draws of random words
UNREAD_CUT = "surgery, words left unread"


class Treatments:
    """Every way to treat the model, and what probes still see after it."""

    def __init__(self, study: SurgerySubject) -> None:
        self.study = study
        self.probed = 2 if study.config.planted is None else 3  # among the states
        self.marks = [study.concept(data) for data in self._probed_rows()]
        self.states: list[CircuitState] = [
            reading.state
            for reading in (study.fitted, study.validation, study.test, study.measured)
        ]
        self.pooled = [  # a cut stands behind the hidden states, so it leaves them as they are
            pooled_states(study.model, data.texts) for data in self._probed_rows()
        ]
        self.hidden_leaks = self._probes("hidden state", *self.pooled)
        words = [word for group in study.data.concept.values() for word in group]
        assert study.model.dictionary is not None
        selection = find_words(study.model.dictionary, words)
        self.concept_words = selection.coordinates
        self.concept_forms = forms_in_texts(study.model.dictionary, selection)
        if selection.missing:
            missing = ", ".join(selection.missing)
            study.console.print(f"not in the dictionary: {missing}", style="dim", markup=False)

    def all(self, cut: Sequence[int]) -> list[Treated]:
        found = [self.by_cut("baseline", ()), self.by_cut("surgery", cut)]
        groups = self.study.concept_columns()
        if groups is not None:
            found.append(self.by_slice("LEACE on open words", (), groups))
            found.append(self.by_hidden_states("LEACE on hidden states", groups))
            found.append(self.by_slice("surgery and LEACE", cut, groups))
        found += self.by_reading({"words left unread": (), UNREAD_CUT: cut}, self.concept_forms)
        texts, seed = self.study.data.measured.texts, self.study.config.seed
        others = random_text_words_like(texts, self.concept_forms, seed)
        if others:
            found += self.by_reading({"random words left unread": ()}, others)
        for draw in range(CONTROLS if cut else 0):
            words = random_words_like(self.study.choosing.state, cut, self.study.config.seed + draw)
            found.append(self.by_cut(f"random words, draw {draw + 1}", words))
        return found

    def by_cut(self, name: str, words: Sequence[int]) -> Treated:
        states = [after_removal(state, words) for state in self.states]
        leaks = self._open_leaks(states)
        return self._treated(name, len(words), [s.logits for s in states[1:]], leaks)

    def by_reading(
        self, cuts: Mapping[str, Sequence[int]], unread: Sequence[str]
    ) -> Iterator[Treated]:
        """Words left unread, with each of the cuts."""
        view = without_words(self.study.model, (), unread)
        read = self._read(view)
        pooled = [pooled_states(view, data.texts) for data in self._probed_rows()]
        hidden = self._probes("hidden state", *pooled)
        for name, words in cuts.items():
            states = [after_removal(state, words) for state in read]
            logits = [state.logits for state in states[1:]]
            yield self._treated(name, len(words), logits, self._open_leaks(states), hidden)

    def by_slice(self, name: str, words: Sequence[int], groups: Tensor) -> Treated:
        """LEACE on the values of open words, after a cut."""
        states = [after_removal(state, words) for state in self.states]
        chosen = slice_words(states[0], self.concept_words)
        eraser: Eraser = fit_leace(dense_slice(states[0], chosen), groups)
        leaks = self._probes(
            "open words",
            *(rows_after_slice(states[i], chosen, eraser) for i in (0, self.probed)),
        )
        logits = [logits_after_slice(state, chosen, eraser) for state in states[1:]]
        return self._treated(name, len(words), logits, leaks)

    def by_hidden_states(self, name: str, groups: Tensor) -> Treated:
        """LEACE fitted on the pooled hidden state, applied at every position before words open."""
        eraser = fit_leace(self.pooled[0], groups)
        with erasing(self.study.model, eraser):
            states = self._read(self.study.model)
        leaks = self._open_leaks(states)
        hidden = self._probes("hidden state", *map(eraser, self.pooled))
        return self._treated(name, 0, [s.logits for s in states[1:]], leaks, hidden)

    def _read(self, model: LexicalSAE) -> list[CircuitState]:
        """What `states` are, of a model that reads otherwise."""
        study = self.study
        assert study.data.task.validation is not None
        rows = (study.train, study.data.task.validation, study.task_test, study.data.measured)
        return [read_texts(model, data.texts, data.labels).state for data in rows]

    def _probed_rows(self) -> tuple[TextDataset, TextDataset]:
        """Those that probes are fitted on, and those that they are measured on. A planted word
        stands in no row of the task's own test split."""
        measured = self.study.data.measured
        return self.study.train, measured if self.probed == 3 else self.study.task_test

    def _open_leaks(self, states: Sequence[CircuitState]) -> tuple[Leak, ...]:
        rows = (sparse_rows(states[i].open_words) for i in (0, self.probed))
        return self._probes("open words", *rows)

    def _treated(
        self,
        name: str,
        words: int,
        logits: Sequence[Tensor],
        leaks: tuple[Leak, ...],
        hidden: tuple[Leak, ...] | None = None,
    ) -> Treated:
        validation, test, measured = logits
        right = validation.argmax(-1) == self.study.validation.labels
        leaks = (*leaks, *(self.hidden_leaks if hidden is None else hidden))
        return Treated(name, words, float(right.double().mean()), test, measured, leaks)

    def _probes(self, source: str, train: Any, test: Any) -> tuple[Leak, ...]:
        concept = self.marks
        seed = self.study.config.seed
        return tuple(measure_leak(source, train, concept[0], test, concept[1], seed=seed))
