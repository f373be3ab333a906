"""The words that the untrained model opens for each text: one pass, before the first step."""

from __future__ import annotations

import torch

from lexical_sae.model.lexical_sae import LexicalSAE
from lexical_sae.model.mode import in_mode
from lexical_sae.training.batching import Collate, EncodedTexts
from lexical_sae.training.losses.reference_words import ReferenceWords, ReferenceWordsBuilder

BATCH = 64


@torch.no_grad()
def collect_reference(model: LexicalSAE, texts: EncodedTexts, collate: Collate) -> ReferenceWords:
    """As many words per text as the thresholds of `model` open now: those of the calibrated start.

    Every process collects all texts: which of them it will meet in training is not known.
    """
    builder = ReferenceWordsBuilder(model.config.dictionary_size)
    lengths = texts.lengths
    order = sorted(range(len(texts)), key=lambda i: lengths[i])
    with in_mode(model, training=False):
        for start in range(0, len(order), BATCH):
            inputs = collate([texts[i] for i in order[start : start + BATCH]])
            inputs = {name: tensor.to(model.device) for name, tensor in inputs.items()}
            state = model.classify(inputs["input_ids"], inputs["attention_mask"])
            builder.add(inputs["index"], state.open_words)
    return builder.build()
