"""What a trained model does on a labelled split, for either task."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lexical_sae.text.dataset import TextDataset, check_dataset
from lexical_sae.training.batching import Collate, EncodedSentences
from lexical_sae.training.encoding import encode_dataset
from lexical_sae.training.entity_measure import EntityMeasure
from lexical_sae.training.measure import measure

if TYPE_CHECKING:
    from lexical_sae.model.lexical_sae import LexicalSAE


def evaluate_model(
    model: LexicalSAE, data: TextDataset, *, circuit_fraction: float = 0.1
) -> dict[str, Any]:
    """The measures of `training.measure`; for a tagger also the scores of every type.

    Labels are matched by name, so that a dataset may list them in another order.
    """
    check_task(model, data)
    assert model.tokenizer is not None
    encoded = encode_dataset(
        model.tokenizer,
        same_labels(data, model.config.labels),
        None if model.config.windows else model.config.max_tokens,
        model.config.special_token_ids,
    )
    entities: EntityMeasure | None = None
    if isinstance(encoded, EncodedSentences):
        entities = EntityMeasure(encoded, model.config.labels)
    found: dict[str, Any] = {"rows": len(data)}
    found |= measure(
        model,
        encoded,
        Collate(int(model.tokenizer.pad_token_id)),
        circuit_fraction=circuit_fraction,
        residual=True,
        entities=entities,
    )
    return found if entities is None else {**found, **entities.scores().to_dict()}


def check_task(model: LexicalSAE, data: TextDataset) -> None:
    if data.task != model.config.task:
        raise ValueError(
            f"{data.name} is for {data.task}, the model for {model.config.task}; expected data "
            "for the same task."
        )
    check_dataset(data)


def notes_on(data: TextDataset) -> list[str]:
    """What a reader must know of the measured rows: numbers say nothing of a class that is not
    among them, as in a few rows of a sorted file."""
    absent = [name for name, count in data.label_counts().items() if not count]
    if not absent:
        return []
    rest = f" and {len(absent) - 10:,} more" if len(absent) > 10 else ""
    unit = "texts" if data.task == "classification" else "words"
    return [
        f"None of the measured {unit} has the label {', '.join(absent[:10])}{rest}, so the numbers "
        "say nothing of it."
    ]


def same_labels(data: TextDataset, labels: list[str]) -> TextDataset:
    """The same rows with labels counted as the model counts them."""
    unknown = [name for name in data.label_names if name not in labels]
    used = data.label_counts()
    strange = next((name for name in unknown if used[name]), None)
    if strange is not None:
        raise ValueError(
            f"{data.name} has the label {strange!r}, which the model does not know; expected "
            f"{', '.join(labels[:20])}."
        )
    place = [labels.index(name) if name in labels else 0 for name in data.label_names]
    return replace(
        data,
        label_names=tuple(labels),
        labels=[place[label] for label in data.labels],
        tags=[[place[tag] for tag in tags] for tags in data.tags],
    )
