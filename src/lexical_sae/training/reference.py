"""The words that the untrained model opens for a sample of the texts: one pass before training.

The anchor compares with them, and the head's start is fitted on them.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from lexical_sae.model.lexical_layer import by_word
from lexical_sae.model.lexical_sae import LexicalSAE
from lexical_sae.model.mode import in_mode
from lexical_sae.model.open_words import OpenWords
from lexical_sae.training.batching import Collate, EncodedTexts
from lexical_sae.training.decisions import decide
from lexical_sae.training.losses.reference_words import ReferenceWords, ReferenceWordsBuilder

BATCH = 64


@dataclass(frozen=True, eq=False)
class OpenBatch:
    """The open words of some texts, with their labels."""

    labels: Tensor  # [B]
    open_words: OpenWords


@dataclass(frozen=True, eq=False)
class Reference:
    """Every `stride`-th text of the training set, as the untrained model read it."""

    words: ReferenceWords
    stride: int
    batches: tuple[OpenBatch, ...]

    def knows(self, index: Tensor) -> Tensor:
        """[B] bool: whether each text, by its place in the training set, is in the sample."""
        return index % self.stride == 0


@torch.no_grad()
def collect_reference(
    model: LexicalSAE,
    texts: EncodedTexts,
    collate: Collate,
    sample: int,
    precision: str = "fp32",
) -> Reference:
    """As many words per text as the thresholds of `model` open now: those of the calibrated start.

    About `sample` texts, spread evenly, so that a sorted file is sampled fairly. Every process
    reads all of them: which it will meet in training is not known.
    """
    stride = max(1, round(len(texts) / sample))
    builder = ReferenceWordsBuilder(model.config.dictionary_size)
    lengths = texts.lengths
    order = sorted(range(0, len(texts), stride), key=lambda i: lengths[i])
    batches = []
    with in_mode(model, training=False):
        for start in range(0, len(order), BATCH):
            inputs = collate([texts[i] for i in order[start : start + BATCH]])
            inputs = {name: tensor.to(model.device) for name, tensor in inputs.items()}
            state, batch = decide(model, inputs, precision=precision)
            builder.add(batch.place, by_word(model.lexical, state.open_words))
            batches.append(OpenBatch(batch.labels, state.open_words))
    return Reference(builder.build(), stride, tuple(batches))
