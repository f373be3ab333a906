"""Entities that a tagger finds while it is measured: precision, recall and F1."""

from __future__ import annotations

import functools

from torch import Tensor

from lexical_sae.model.sentence_logits import SentenceLogits
from lexical_sae.text.entity_scores import EntityScores, entity_scores
from lexical_sae.training.batching import EncodedSentences


class EntityMeasure:
    """Collects the logits of tagged words, batch by batch."""

    def __init__(self, sentences: EncodedSentences, labels: list[str]) -> None:
        self.sentences = sentences
        self.found = SentenceLogits([len(tags) for tags in sentences.tags], labels)

    def add(self, windows: Tensor, logits: Tensor) -> None:
        """windows [B]: their places in the data; logits [R, C]: their tagged words, in order."""
        start = 0
        for place in windows.tolist():
            window = self.sentences.windows[place]
            self.found.add(window, logits[start : start + len(window.words)])
            start += len(window.words)

    @functools.cached_property
    def predicted(self) -> list[list[str]]:
        """The best legal tags of every sentence, once all batches are in."""
        return [[self.found.labels[tag] for tag in tags] for tags in self.found.tags()]

    def scores(self) -> EntityScores:
        names = self.found.labels
        gold = [[names[tag] for tag in tags] for tags in self.sentences.tags]
        return entity_scores(gold, self.predicted)
