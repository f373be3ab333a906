"""A finished run measured on other held-out rows, from its saved model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lexical_sae.evaluation.drift import untrained_model
from lexical_sae.evaluation.held_out import same_labels
from lexical_sae.model.dense_twin import DenseTwin
from lexical_sae.model.lexical_sae import LexicalSAE
from lexical_sae.text.dataset import TextDataset
from lexical_sae.training.batching import Collate, EncodedTexts
from lexical_sae.training.config import RunConfig
from lexical_sae.training.encoding import encode_dataset
from lexical_sae.training.final_measure import final_measure, untrained_reference
from lexical_sae.training.measure import measure
from lexical_sae.training.run import Data


def measured_anew(
    config: RunConfig, folder: Path, data: Data, metrics: dict[str, Any]
) -> dict[str, Any]:
    """`metrics` of the run in `folder`, with every number that is of held-out rows taken from those
    of `data`; what its training took stays as it was."""
    kind = DenseTwin if config.dense_twin else LexicalSAE
    model: Any = kind.from_pretrained(folder / "model")
    collate = Collate(model.tokenizer.pad_token_id)

    def encoded(split: TextDataset) -> EncodedTexts:
        known, special = same_labels(split, metrics["labels"]), model.config.special_token_ids
        return encode_dataset(model.tokenizer, known, metrics["max_length"], special)

    found = {**metrics, "test": {}, "validation": {}}
    found["rows"] = {**metrics["rows"], "test": len(data.test) if data.test else 0}
    if data.test is not None:
        test = encoded(data.test)
        before = None if config.dense_twin else untrained_model(config, model, data.train)
        untrained = None if before is None else untrained_reference(before, test, collate)
        found["test"] = final_measure(config, model, test, collate, untrained)
    if data.validation is not None:
        found["validation"] = measure(model, encoded(data.validation), collate)
    return found
