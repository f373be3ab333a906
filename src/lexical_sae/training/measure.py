"""What a model does on a set of texts: loss, accuracy, open words, and how its circuits hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from lexical_sae.attribution.circuits import circuit_mask
from lexical_sae.attribution.contributions import compute_attribution_tensor
from lexical_sae.attribution.verify import verify_sum
from lexical_sae.model.lexical_layer import by_word
from lexical_sae.model.lexical_sae import LexicalSAE
from lexical_sae.model.mode import in_mode
from lexical_sae.model.state import CircuitState
from lexical_sae.training.batching import Collate, EncodedSentences, EncodedTexts
from lexical_sae.training.decisions import decide
from lexical_sae.training.distributed import process_count, process_rank, sum_over_processes
from lexical_sae.training.entity_measure import EntityMeasure
from lexical_sae.training.losses.anchor import overlap
from lexical_sae.training.losses.reference_words import ReferenceWords

EVAL_BATCH = 64


def length_batches(
    texts: EncodedTexts, collate: Collate, batch: int
) -> Iterator[dict[str, Tensor]]:
    """All texts, of like length together; each process takes its part. Of sentences it takes all:
    their entities can be counted only where all windows of a sentence are."""
    lengths = texts.lengths
    mine = sorted(range(len(texts)), key=lambda i: lengths[i])
    if not isinstance(texts, EncodedSentences):
        mine = mine[process_rank() :: process_count()]
    for start in range(0, len(mine), batch):
        yield collate([texts[i] for i in mine[start : start + batch]])


@torch.no_grad()
def measure(
    model: Any,
    texts: EncodedTexts,
    collate: Collate,
    *,
    circuit_fraction: float | None = None,
    reference: ReferenceWords | None = None,
    reference_rows: int | None = None,
    residual: bool = False,
    entities: EntityMeasure | None = None,
    batch: int = EVAL_BATCH,
) -> dict[str, float]:
    """Means over all texts (tagged words): ce, accuracy and, for a lexical model, open_words.

    Sentences give the entities' precision, recall and f1 too, of the best legal tags.
    `circuit_fraction` adds circuit_agreement (share of the model's own predictions that its circuit
    of that size keeps) and content_share; `reference` (of the first `reference_rows` texts) adds
    reference_overlap; `residual` adds the largest residual of the sum, also
    relative to its scale.
    """
    device = next(model.parameters()).device
    totals: dict[str, float] = {}
    largest = relative = 0.0
    centroids: Tensor | None = None  # [C, V] Σ|A| by predicted class
    if entities is None and isinstance(texts, EncodedSentences):
        entities = EntityMeasure(texts, model.config.labels)

    def add(name: str, values: Tensor) -> None:
        totals[name] = totals.get(name, 0.0) + float(values.double().sum())

    with in_mode(model, training=False):
        for inputs in length_batches(texts, collate, batch):
            inputs = {name: tensor.to(device) for name, tensor in inputs.items()}
            state, counted = decide(model, inputs)
            labels, index = counted.labels, counted.index
            if entities is not None:
                entities.add(inputs["index"], state.logits)
            add("rows", torch.ones(len(labels)))
            add("ce", F.cross_entropy(state.logits, labels, reduction="none"))
            add("accuracy", state.logits.argmax(-1) == labels)
            if not isinstance(state, CircuitState):
                continue
            add("open_words", state.open_words.counts())
            if circuit_fraction is not None:
                assert isinstance(model, LexicalSAE)
                open_words = state.open_words
                attribution = compute_attribution_tensor(state, row_classes=state.predicted)
                _circuit_measures(state, attribution, circuit_fraction, add)
                if not isinstance(texts, EncodedSentences):
                    _content_share(model, state, attribution, inputs, add)
                centroids = _add_attributions(centroids, state, attribution)
                if reference is not None:
                    known = index < (len(texts) if reference_rows is None else reference_rows)
                    plain = by_word(model.lexical, open_words)
                    inside = reference.contains(counted.place, plain)
                    add("overlap_rows", known)
                    add("reference_overlap", overlap(attribution, inside, open_words)[known])
            if residual:
                check = verify_sum(state)
                largest = max(largest, float(check.residual.max()))
                relative = max(relative, float((check.residual / check.scale).max()))
    names = sorted(totals)
    sums = sum_over_processes(torch.tensor([totals[name] for name in names], dtype=torch.float64))
    reduced = dict(zip(names, sums.tolist(), strict=True))
    rows = reduced.pop("rows")
    overlap_rows = reduced.pop("overlap_rows", 0.0)
    means = {name: value / rows for name, value in reduced.items()}
    if overlap_rows:
        means["reference_overlap"] *= rows / overlap_rows
    if entities is not None:
        scores = entities.scores()
        means |= {name: getattr(scores.micro, name) for name in ("precision", "recall", "f1")}
        means["accuracy"] = scores.token_accuracy  # of the legal tags, over all words
    if centroids is not None:
        means |= _mean_cosine(sum_over_processes(centroids))
    if residual:
        means |= {"max_residual": largest, "max_relative_residual": relative}
    return means


def _circuit_measures(
    state: CircuitState, attribution: Tensor, fraction: float, add: Callable[[str, Tensor], None]
) -> None:
    mask = circuit_mask(attribution, state.open_words, fraction=fraction)
    masked = state.with_open_words(state.open_words.scaled(mask))
    add("circuit_agreement", masked.predicted == state.predicted)


def _content_share(
    model: LexicalSAE,
    state: CircuitState,
    attribution: Tensor,
    inputs: dict[str, Tensor],
    add: Callable[[str, Tensor], None],
) -> None:
    open_words = state.open_words
    content = model.content_mask(inputs["input_ids"], inputs["attention_mask"])
    at_content = content[open_words.row, open_words.position]
    add("content_share", overlap(attribution, at_content, open_words))


def _add_attributions(total: Tensor | None, state: CircuitState, attribution: Tensor) -> Tensor:
    open_words = state.open_words
    if total is None:
        total = open_words.value.new_zeros(state.head.classes, open_words.dictionary_size)
    where = (state.predicted[open_words.row], open_words.word)
    return total.index_put_(where, attribution.abs(), accumulate=True)


def _mean_cosine(centroids: Tensor) -> dict[str, float]:
    """class_cosine: mean over pairs of classes that were predicted; left out if fewer than two."""
    seen = centroids[centroids.sum(1) > 0]
    if len(seen) < 2:
        return {}
    cosine = F.normalize(seen, dim=1) @ F.normalize(seen, dim=1).T
    pairs = ~torch.eye(len(seen), dtype=torch.bool, device=cosine.device)
    return {"class_cosine": float(cosine[pairs].mean())}
