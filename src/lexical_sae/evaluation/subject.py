"""What is evaluated: a model, the split it is measured on, and what may be fitted and compared."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from lexical_sae.evaluation.reading import Reading, read_texts
from lexical_sae.text.dataset import TextDataset

if TYPE_CHECKING:
    from lexical_sae.model.dense_twin import DenseTwin
    from lexical_sae.model.lexical_sae import LexicalSAE

TRAIN_ROWS = 2000  # of the training split, for circuits, probes and autoencoders


class NotPossible(ValueError):  # noqa: N818  (no fault: a step that has nothing to work on)
    """A step cannot be done for this subject; the message says why and what would make it so."""


@dataclass(eq=False)
class Subject:
    """Texts are read once and kept. `train` is never measured on, `test` never fitted on."""

    model: LexicalSAE
    test: TextDataset
    train: TextDataset | None = None
    twin: DenseTwin | None = None
    untrained: Callable[[], LexicalSAE] | None = None
    peer_texts: int = 50  # that LIME and SHAP explain
    seed: int = 0
    advance: Callable[[int], None] = field(default=lambda rows: None)

    @cached_property
    def reading(self) -> Reading:
        return read_texts(self.model, self.test.texts, self.test.labels, advance=self.advance)

    @cached_property
    def train_sample(self) -> TextDataset:
        """A fair sample of the training split: files may be sorted."""
        if self.train is None:
            raise NotPossible(
                "There is no training split to fit on; give the run's folder, or a dataset that "
                "has one."
            )
        rows = list(range(len(self.train)))
        random.Random(self.seed).shuffle(rows)
        return self.train.select(sorted(rows[:TRAIN_ROWS]))

    @cached_property
    def train_reading(self) -> Reading:
        sample = self.train_sample
        return read_texts(self.model, sample.texts, sample.labels, advance=self.advance)

    def some_texts(self, count: int) -> list[int]:
        """Places of `count` test texts, spread evenly."""
        stride = max(1, len(self.test) // max(1, count))
        return list(range(0, len(self.test), stride))[:count]
