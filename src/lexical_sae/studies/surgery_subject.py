"""The subject of a surgery study: the trained model and its passes over every set of rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from torch import Tensor

from lexical_sae.evaluation.reading import Reading, read_texts, spread
from lexical_sae.model.lexical_sae import LexicalSAE
from lexical_sae.studies.run_folder import trained_run
from lexical_sae.studies.surgery_config import RUN, SurgeryConfig
from lexical_sae.studies.surgery_data import StudyData, load_study_data
from lexical_sae.surgery.comparison import Gaps
from lexical_sae.surgery.fairness import FEWEST_ROWS
from lexical_sae.surgery.gap import direction_of
from lexical_sae.surgery.groups import groups_of_terms
from lexical_sae.surgery.rates import Bools
from lexical_sae.text.dataset import TextDataset
from lexical_sae.training.config import resolve_config


class SurgerySubject:
    """What is read once and used by every part."""

    def __init__(self, config: SurgeryConfig, folder: Path, console: Console) -> None:
        self.config, self.folder, self.console = config, folder, console
        self.run_config = resolve_config(config.train, where="train")
        self.data: StudyData = load_study_data(config, self.run_config)
        # before the training, so that what cannot be measured is told now
        labels = self.data.task.train.label_names  # those of the model too
        self.direction = direction_of(labels, config.positive)
        self.positive = [labels.index(name) for name in config.positive]
        self.groups_chosen_on = self.data.groups(self.data.choosing)
        self.groups_measured = self.data.groups(self.data.measured)
        self.model = self._trained()
        assert self.data.task.validation is not None
        assert self.data.task.test is not None
        self.task_test: TextDataset = self.data.task.test
        train = self.data.task.train
        self.train = train.select(spread(len(train), config.fitted_rows))
        self.choosing = self._read(self.data.choosing, "rows to choose words on")
        self.measured = self._read(self.data.measured, "rows to measure gaps on")
        self.validation = self._read(self.data.task.validation, "the task's validation rows")
        self.test = self._read(self.task_test, "the task's test rows")
        self.fitted = self._read(self.train, "training rows")

    def _trained(self) -> LexicalSAE:
        folder = self.folder / RUN
        trained_run(self.run_config, folder, self.data.task, self.console)
        return LexicalSAE.from_pretrained(folder / "model")

    def _read(self, data: TextDataset, what: str) -> Reading:
        self.console.print(f"reading {what}: {len(data):,}", style="dim")
        return read_texts(self.model, data.texts, data.labels)

    def concept(self, data: TextDataset) -> Bools:
        """Rows that mention one of the words."""
        marks = groups_of_terms(data.texts, self.data.concept)
        found: Bools = np.any(np.stack(list(marks.values())), axis=0)
        return found

    def gaps(self) -> Gaps:
        """The rows that gaps are measured on."""
        frames, seed = self.data.frames(self.data.measured), self.config.seed
        return Gaps(self.measured.labels, self.groups_measured, self.positive, frames, seed)

    def gold(self, reading: Reading) -> Bools:
        """Rows that are rightly flagged."""
        return np.isin(reading.labels.numpy(), self.positive)

    def words(self, coordinates: Sequence[int]) -> list[str]:
        assert self.model.dictionary is not None
        return [self.model.dictionary.words[v] for v in coordinates]

    def concept_columns(self) -> Tensor | None:
        """[N, G] for the training rows: the groups of words that enough rows mention, if any."""
        marks = groups_of_terms(self.train.texts, self.data.concept)
        many = [m for m in marks.values() if FEWEST_ROWS <= m.sum() <= len(m) - FEWEST_ROWS]
        return torch.from_numpy(np.stack(many, 1)).double() if many else None
