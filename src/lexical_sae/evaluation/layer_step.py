"""The layers' parts over some texts, as a finding."""

from __future__ import annotations

import torch

from lexical_sae.evaluation.bootstrap import mean_estimate
from lexical_sae.evaluation.layers import find_layers, layer_parts
from lexical_sae.evaluation.reading import NotPossible
from lexical_sae.evaluation.subject import Subject
from lexical_sae.report.finding import Cell, Estimate, Finding, FindingTable

TEXTS, BATCH = 200, 32


def measure_layers(subject: Subject) -> Finding:
    """Mean parts of the decided logit, and what skipping a layer does, over some texts."""
    model = subject.model
    try:
        count = len(find_layers(model.backbone))
    except ValueError as reason:
        raise NotPossible(str(reason)) from None
    places = sorted(subject.some_texts(TEXTS), key=lambda i: len(subject.test.texts[i]))
    found = []
    for start in range(0, len(places), BATCH):
        part = [subject.test.texts[i] for i in places[start : start + BATCH]]
        found.append(layer_parts(model, **model.encode(part).model_inputs()))
        subject.advance(len(part))
    parts = torch.cat([one.parts for one in found]).double()  # [N, 2 + layers]
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
    columns = ("part", "mean", "from", "to", "change when skipped", "decisions kept, %")
    return Finding(
        metrics={"layer_residual": Estimate(float(residual.max()))},
        tables=(FindingTable("Parts of the decided logit", columns, tuple(rows)),),
        notes=(f"{len(parts):,} texts; the parts of each add up to its logit",),
    )
