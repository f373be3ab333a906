"""What every trained cell is measured by: its own numbers, and which rows it got right."""

from __future__ import annotations

from typing import Any

import torch

from lexical_sae.evaluation.dense_states import dense_states
from lexical_sae.evaluation.reading import Reading
from lexical_sae.evaluation.tag_reading import TagReading, read_split
from lexical_sae.studies.grid import TrainedCell

KEPT = (
    *("accuracy", "f1", "open_words", "circuit_agreement", "class_cosine"),
    *("content_share", "reference_overlap", "max_residual", "max_relative_residual"),
)


def basic_measures(trained: TrainedCell) -> dict[str, Any]:
    """From the run's own metrics; `right` has a 1 or a 0 for every row measured on. Of a tagger
    `tags_right` and `tags` count the tags of every sentence, as its accuracy does."""
    test, seconds = trained.metrics["test"], trained.metrics["seconds"]
    return {
        **{name: test[name] for name in KEPT if name in test},
        "seconds": seconds["training"],
        "preparation_seconds": seconds["preparation"],
        "rows": trained.metrics["rows"],
        "steps": trained.metrics["steps"],
        "batch_size": trained.metrics["batch_size"],
        "max_length": trained.metrics["max_length"],
        **rows_right(trained),
    }


def rows_right(trained: TrainedCell) -> dict[str, Any]:
    """Texts with the right label, or sentences whose tags are all right."""
    if trained.config.dense_twin:
        return {"right": _of_twin(trained)}
    reading = read_split(trained.model, trained.test)
    found: dict[str, Any] = {"right": right_of(reading, trained)}
    return found | (tag_counts(reading, trained) if isinstance(reading, TagReading) else {})


def tag_counts(reading: TagReading, trained: TrainedCell) -> dict[str, Any]:
    pairs = list(zip(reading.tags, trained.test.tags, strict=True))
    right = [sum(a == b for a, b in zip(given, gold, strict=True)) for given, gold in pairs]
    return {"tags_right": right, "tags": [len(gold) for _, gold in pairs]}


def right_of(reading: Reading, trained: TrainedCell) -> str:
    if isinstance(reading, TagReading):
        pairs = zip(reading.tags, trained.test.tags, strict=True)
        return _marks([list(given) == list(gold) for given, gold in pairs])
    return _marks((reading.state.predicted == reading.labels).tolist())


@torch.no_grad()
def _of_twin(trained: TrainedCell) -> str:
    """Of a twin that tags, only its run's metrics are known: nothing reads its sentences."""
    if trained.test.task == "tagging":
        return ""
    said = trained.twin.head(dense_states(trained.twin, trained.test.texts)).argmax(-1)
    return _marks((said == torch.tensor(trained.test.labels)).tolist())


def _marks(right: list[bool]) -> str:
    return "".join("1" if one else "0" for one in right)
