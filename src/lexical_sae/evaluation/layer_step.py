"""The layers' parts over some texts, or over some words of a tagger, as a finding."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from lexical_sae.evaluation.bootstrap import mean_estimate
from lexical_sae.evaluation.layers import LayerParts, find_layers, layer_parts
from lexical_sae.evaluation.reading import NotPossible
from lexical_sae.evaluation.subject import Subject
from lexical_sae.model.tagging import padded
from lexical_sae.report.finding import Cell, Estimate, Finding, FindingTable
from lexical_sae.text.alignment import sentence_windows

TEXTS, BATCH = 200, 32


def measure_layers(subject: Subject) -> Finding:
    """Mean parts of the decided logit, and what skipping a layer does, over some texts."""
    model = subject.model
    try:
        count = len(find_layers(model.backbone))
    except ValueError as reason:
        raise NotPossible(str(reason)) from None
    if not subject.tagging and model.config.pooling != "max":
        raise NotPossible(f"layers add up for max pooling only, not for {model.config.pooling!r}.")
    found = list(_of_tags(subject) if subject.tagging else _of_texts(subject))
    parts = torch.cat([one.parts for one in found]).double()  # [N, 2 + layers]
    if not len(parts):
        raise NotPossible("No word of these sentences gets another tag than O.")
    residual = torch.cat([one.residual for one in found]).double()
    skipped = torch.cat([one.skipped for one in found]).double()
    kept = torch.cat([one.kept for one in found]).double()
    names = ["bias", "embeddings", *(f"layer {k + 1}" for k in range(count))]
    rows: list[tuple[Cell, ...]] = []
    for k, name in enumerate(names):
        mean = mean_estimate(parts[:, k].numpy(), subject.seed)
        change = float(skipped[:, k - 2].mean()) if k >= 2 else None
        stay = 100 * float(kept[:, k - 2].mean()) if k >= 2 else None
        rows.append((name, mean.value, mean.low, mean.high, change, stay))
    of = "words that get another tag than O" if subject.tagging else "texts"
    columns = ("part", "mean", "from", "to", "change when skipped", "decisions kept, %")
    return Finding(
        metrics={"layer_residual": Estimate(float(residual.max()))},
        tables=(FindingTable("Parts of the decided logit", columns, tuple(rows)),),
        notes=(f"{len(parts):,} {of}; the parts of each add up to its logit",),
    )


def _of_texts(subject: Subject) -> Iterator[LayerParts]:
    model, texts = subject.model, subject.test.texts
    places = sorted(subject.some_texts(TEXTS), key=lambda i: len(texts[i]))
    for start in range(0, len(places), BATCH):
        part = [texts[i] for i in places[start : start + BATCH]]
        yield layer_parts(model, **model.encode(part, model.config.max_tokens).model_inputs())
        subject.advance(len(part))


def _of_tags(subject: Subject) -> Iterator[LayerParts]:
    """Of the words that get another tag than O, since most others are decided by nothing."""
    model = subject.model
    assert model.tokenizer is not None
    sentences = [subject.test.tokens[i] for i in subject.some_texts(TEXTS)]
    limits = (model.config.max_tokens, model.config.special_token_ids)
    windows = sentence_windows(model.tokenizer, sentences, *limits)
    for start in range(0, len(windows), BATCH):
        part = windows[start : start + BATCH]
        found = layer_parts(model, *padded(model, part))
        yield found.some(found.decided != subject.outside)
        subject.advance(len(part))
