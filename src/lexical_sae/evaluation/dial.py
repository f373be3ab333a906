"""The sparsity dial: all thresholds scaled, from denser to sparser, nothing else changed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch
import torch.nn.functional as F

from lexical_sae.evaluation.subject import Subject
from lexical_sae.model.gate import nonnegative_threshold
from lexical_sae.model.lexical_sae import LexicalSAE
from lexical_sae.report.finding import Cell, Curve, Finding, FindingTable

FACTORS = (0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0)
TEXTS = 200


@contextlib.contextmanager
def scaled_thresholds(model: LexicalSAE, factor: float) -> Iterator[None]:
    """θ times `factor` for the length of the block; then, also after an error, as it was."""
    threshold = model.lexical.threshold
    before = threshold.detach().clone()
    try:
        with torch.no_grad():
            threshold.copy_(nonnegative_threshold(before) * factor)
        yield
    finally:
        with torch.no_grad():
            threshold.copy_(before)


def measure_dial(subject: Subject) -> Finding:
    """Accuracy, KL to the model as it is, and open words along the dial, on some texts."""
    some = subject.test.select(subject.some_texts(TEXTS))
    plain = subject.read(subject.model, some)
    said = F.log_softmax(plain.state.logits.double(), -1)
    rows: list[tuple[Cell, ...]] = []
    for factor in FACTORS:
        with scaled_thresholds(subject.model, factor):
            found = subject.read(subject.model, some)
        other = F.log_softmax(found.state.logits.double(), -1)
        right = (found.state.predicted == found.labels).double().mean()
        same = (found.state.predicted == plain.state.predicted).double().mean()
        rows.append(
            (
                *(factor, float(found.state.open_words.counts().double().mean())),
                *(100 * float(right), 100 * float(same)),
                float((said.exp() * (said - other)).sum(-1).mean()),
            )
        )
    columns = ("thresholds times", "open words", "accuracy, %", "decisions kept, %", "KL")
    points = sorted((float(row[1] or 0), float(row[2] or 0)) for row in rows)
    return Finding(
        tables=(FindingTable("Along the dial", columns, tuple(rows)),),
        curves=(
            Curve("The sparsity dial", "open words", "accuracy, %", {"accuracy": tuple(points)}),
        ),
        notes=(f"{len(some):,} {subject.unit}; nothing is trained again",),
    )
