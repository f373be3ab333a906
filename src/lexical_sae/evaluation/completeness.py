"""Step 3: how much of the decision is in the few words that carry it?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from lexical_sae.attribution.circuits import circuit_mask
from lexical_sae.attribution.contributions import compute_attribution_tensor
from lexical_sae.evaluation.bootstrap import mean_estimate
from lexical_sae.evaluation.perturbation import FRACTIONS
from lexical_sae.evaluation.reading import Reading
from lexical_sae.report.finding import Cell, Curve, Estimate, Finding, FindingTable


@dataclass(frozen=True, eq=False)
class CircuitDecisions:
    """What the circuits of one size decide, for all N texts."""

    fraction: float
    predicted: Tensor  # [N]
    kl: Tensor  # [N] of the whole model's probabilities and the circuit's
    words: Tensor  # [N] words in the circuit


@torch.no_grad()
def circuit_decisions(reading: Reading, fraction: float) -> CircuitDecisions:
    """Every text through the head with its own circuit alone: the top fraction of its open words by
    what they give the predicted label."""
    predicted, kl, words = [], [], []
    for state, _ in reading.chunks():
        attribution = compute_attribution_tensor(state, row_classes=state.predicted)
        mask = circuit_mask(attribution, state.open_words, fraction=fraction)
        masked = state.with_open_words(state.open_words.scaled(mask))
        whole, part = F.log_softmax(state.logits, -1), F.log_softmax(masked.logits, -1)
        predicted.append(masked.predicted)
        kl.append((whole.exp() * (whole - part)).sum(-1))
        words.append(masked.open_words.counts())
    return CircuitDecisions(fraction, torch.cat(predicted), torch.cat(kl), torch.cat(words))


def cohen_kappa(first: Tensor, second: Tensor) -> float | None:
    """Agreement beyond what the frequencies of the labels give by chance; None where chance alone
    gives it all, as for a model that always says the same."""
    classes = int(max(first.max(), second.max())) + 1
    a = torch.bincount(first, minlength=classes).double() / len(first)
    b = torch.bincount(second, minlength=classes).double() / len(second)
    chance = float((a * b).sum())
    if chance >= 1 - 1e-12:
        return None
    return (float((first == second).double().mean()) - chance) / (1 - chance)


def agreement_area(fractions: tuple[float, ...], agreement: list[float]) -> float:
    """Area under agreement over the range of the fractions, as a share of the whole."""
    x, y = np.array(fractions), np.array(agreement)
    area = float(((y[1:] + y[:-1]) / 2 * np.diff(x)).sum())
    return area / (fractions[-1] - fractions[0])


def measure_completeness(
    reading: Reading,
    label_names: Sequence[str],
    fractions: tuple[float, ...] = FRACTIONS,
    seed: int = 0,
) -> Finding:
    """Agreement with the whole model, accuracy and KL for circuits of growing size."""
    whole, labels = reading.state.predicted, reading.labels
    why = _says_nothing(reading)
    rows: list[tuple[Cell, ...]] = []
    agreements: list[float] = []
    metrics: dict[str, Estimate] = {}
    worst: tuple[dict[str, Cell], ...] = ()
    for fraction in fractions:
        found = circuit_decisions(reading, fraction)
        same = (found.predicted == whole).double()
        kappa = cohen_kappa(whole, found.predicted)
        agreements.append(float(same.mean()))
        accuracy = float((found.predicted == labels).double().mean())
        rows.append(
            (
                f"{100 * fraction:g} %",
                float(found.words.double().mean()),
                None if why else 100 * agreements[-1],
                None if why else kappa,
                100 * accuracy,
                float(found.kl.double().mean()),
            )
        )
        if fraction == 0.1:
            metrics["agreement_at_10"] = mean_estimate(same.numpy(), seed)
            metrics["kappa_at_10"] = Estimate(kappa)
            worst = _worst(reading, found, label_names)
    metrics["agreement_area"] = Estimate(agreement_area(fractions, agreements))
    if why:
        metrics = {name: Estimate(None, why=why) for name in metrics}
    accuracy = 100 * float((whole == labels).double().mean())
    open_words = float(reading.state.open_words.counts().double().mean())
    itself = (None, None) if why else (100.0, 1.0)
    rows.append(("all", open_words, *itself, accuracy, 0.0))
    columns = ("open words kept", "words", "agreement, %", "kappa", "accuracy, %", "KL")
    points = tuple((100 * f, 100 * a) for f, a in zip(fractions, agreements, strict=True))
    return Finding(
        metrics=metrics,
        tables=(FindingTable("Circuits of growing size", columns, tuple(rows)),),
        curves=()
        if why
        else (
            Curve(
                "Decisions that the circuit keeps",
                "open words kept, %",
                "agreement, %",
                {"circuit": points},
            ),
        ),
        worst=worst,
        notes=(f"{why[0].upper()}{why[1:]}, so agreement says nothing.",) if why else (),
    )


def _says_nothing(reading: Reading) -> str:
    """Why agreement with this model says nothing; empty if it does. What never changes is kept by
    any circuit, even by an empty one."""
    if not len(reading.state.open_words):
        return "no word is open"
    if len(reading.state.predicted.unique()) == 1:
        return "the model always gives the same label"
    return ""


def _worst(
    reading: Reading, found: CircuitDecisions, label_names: Sequence[str]
) -> tuple[dict[str, Cell], ...]:
    """The decisions that the circuit changes, those that it changes most first."""
    whole = reading.state.predicted
    changed = (found.predicted != whole).nonzero()[:, 0].tolist()
    changed.sort(key=lambda row: -float(found.kl[row]))
    return tuple(
        {
            "text": reading.names[row],
            "decision": label_names[int(whole[row])],
            "of the circuit": label_names[int(found.predicted[row])],
            "KL": float(found.kl[row]),
        }
        for row in changed[:5]
    )
