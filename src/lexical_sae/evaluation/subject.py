"""What is evaluated: a model, the split it is measured on, and what may be fitted and compared."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from lexical_sae.attribution.circuits import (
    ClassAttributions,
    ClassCircuit,
    class_circuits,
    collect_class_attributions,
)
from lexical_sae.evaluation.circuit_choice import CircuitChoice
from lexical_sae.evaluation.faithfulness import limits_of
from lexical_sae.evaluation.perturbation import Limits
from lexical_sae.evaluation.reading import NotPossible, Reading, spread
from lexical_sae.evaluation.tag_reading import read_split
from lexical_sae.text.dataset import TextDataset

if TYPE_CHECKING:
    from lexical_sae.model.dense_twin import DenseTwin
    from lexical_sae.model.lexical_sae import LexicalSAE

TRAIN_ROWS = 2000  # texts of the training split, for circuits, probes and autoencoders
TRAIN_SENTENCES = 500  # of a tagger, where every word is a decision
TAG_DECISIONS = 500  # that are taken apart word by word


@dataclass(eq=False)
class Subject:
    """Texts are read once and kept. `train` is never measured on, `test` never fitted on."""

    model: LexicalSAE
    test: TextDataset
    train: TextDataset | None = None
    twin: DenseTwin | None = None
    untrained: Callable[[], LexicalSAE] | None = None
    peer_texts: int = 50  # that LIME and SHAP explain
    fitted_rows: int | None = None  # of the training split; None: as many as stand above
    seed: int = 0
    circuit_choice: CircuitChoice = field(default_factory=CircuitChoice)
    advance: Callable[[int], None] = field(default=lambda rows: None)

    @cached_property
    def reading(self) -> Reading:
        return self.read(self.model, self.test)

    def read(self, model: LexicalSAE, data: TextDataset) -> Reading:
        """Another model's pass, or one over other rows."""
        return read_split(model, data, self.advance)

    @property
    def tagging(self) -> bool:
        return self.model.config.task == "tagging"

    @property
    def unit(self) -> str:
        """What the rows of a split are."""
        return "sentences" if self.tagging else "texts"

    @property
    def outside(self) -> int:
        """The tag of words that are in no entity."""
        names = self.model.config.labels
        return names.index("O") if "O" in names else -1

    @cached_property
    def taken_apart(self) -> Reading:
        """The decisions whose words are removed one by one: all texts; of a tagger some of the
        words that it puts into an entity, since most others are decided by nothing."""
        if not self.tagging:
            return self.reading
        rows = (self.reading.state.predicted != self.outside).nonzero()[:, 0].tolist()
        return self.reading.some([rows[i] for i in spread(len(rows), TAG_DECISIONS)])

    @cached_property
    def train_sample(self) -> TextDataset:
        """A fair sample of the training split: files may be sorted."""
        if self.train is None:
            raise NotPossible(
                "There is no training split to fit on; give the run's folder, or a dataset that "
                "has one."
            )
        return self._sample(self.train)

    def _sample(self, data: TextDataset) -> TextDataset:
        rows = list(range(len(data)))
        random.Random(self.seed).shuffle(rows)
        usual = TRAIN_SENTENCES if self.tagging else TRAIN_ROWS
        return data.select(sorted(rows[: self.fitted_rows or usual]))

    @cached_property
    def train_reading(self) -> Reading:
        return self.read(self.model, self.train_sample)

    @cached_property
    def circuit_reading(self) -> Reading:
        """Of the texts that the classes' circuits come from."""
        if self.circuit_choice.data is None:
            return self.train_reading
        return self.read(self.model, self._sample(self.circuit_choice.data))

    @cached_property
    def circuit_attributions(self) -> ClassAttributions:
        """Mean |A| of every word for every class, over the texts that are given that class."""
        return collect_class_attributions(state for state, _ in self.circuit_reading.chunks())

    @cached_property
    def circuits(self) -> list[ClassCircuit]:
        return class_circuits(self.circuit_attributions, **self.circuit_choice.size)

    @cached_property
    def limits(self) -> dict[int, Limits]:
        """Of AOPC, for the decisions that are taken apart: two steps measure between them."""
        return limits_of(self.taken_apart, self.advance)

    def some_texts(self, count: int) -> list[int]:
        """Places of `count` test texts, spread evenly."""
        return spread(len(self.test), count)
