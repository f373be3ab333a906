"""Steps 2 and 4: the words that carry each class, and how far the classes are apart in them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from lexical_sae.attribution.circuits import ClassAttributions, ClassCircuit
from lexical_sae.report.finding import Cell, Estimate, Finding, FindingTable

SHOWN_WORDS = 10
SHOWN_PAIRS = 20


def measure_circuits(
    attributions: ClassAttributions,
    circuits: Sequence[ClassCircuit],
    names: Sequence[str],
    words: Sequence[str],
) -> Finding:
    """Sizes and words of the classes' circuits; `words` are those of the dictionary."""
    rows: list[tuple[Cell, ...]] = []
    for circuit in circuits:
        seen = int((attributions.mean[circuit.class_index] > 0).sum())
        shown = ", ".join(words[c] for c in circuit.coordinates[:SHOWN_WORDS])
        name = names[circuit.class_index]
        rows.append((name, circuit.rows, seen, len(circuit.coordinates), circuit.share, shown))
    known = [circuit for circuit in circuits if circuit.coordinates]
    why = "" if known else "no class has a word that counts for it"
    mean = _mean([len(circuit.coordinates) for circuit in known])
    share = _mean([circuit.share for circuit in known])
    columns = (
        "class",
        "decisions",
        "words seen",
        "words in the circuit",
        "share of |A|",
        "the largest",
    )
    return Finding(
        metrics={
            "circuit_words": Estimate(mean, why=why),
            "circuit_share": Estimate(share, why=why),
        },
        tables=(FindingTable("Circuits of the classes", columns, tuple(rows)),),
        notes=_missing(circuits, names),
    )


def measure_separation(
    attributions: ClassAttributions, circuits: Sequence[ClassCircuit], names: Sequence[str]
) -> Finding:
    """Cosine of mean |A| and Jaccard of circuits for every pair of classes that has both; work
    grows with classes × words, not with pairs of texts."""
    known = [circuit.class_index for circuit in circuits if circuit.coordinates]
    if len(known) < 2:
        why = f"{len(known)} of {len(circuits)} classes have a circuit, a comparison needs two"
        return Finding(
            metrics={name: Estimate(None, why=why) for name in ("class_cosine", "class_jaccard")},
            notes=_missing(circuits, names),
        )
    cosine = cosines(attributions.mean[known])
    overlap = jaccards([set(circuits[index].coordinates) for index in known])
    first, second = torch.triu_indices(len(known), len(known), 1)
    pairs = sorted(
        (
            (names[known[i]], names[known[j]], float(cosine[i, j]), float(overlap[i, j]))
            for i, j in zip(first.tolist(), second.tolist(), strict=True)
        ),
        key=lambda pair: -pair[2],
    )
    title = "Pairs of classes" if len(pairs) <= SHOWN_PAIRS else "The closest pairs of classes"
    return Finding(
        metrics={
            "class_cosine": Estimate(float(cosine[first, second].mean())),
            "class_jaccard": Estimate(float(overlap[first, second].mean())),
        },
        tables=(
            FindingTable(title, ("class", "and", "cosine", "Jaccard"), tuple(pairs[:SHOWN_PAIRS])),
        ),
        notes=_missing(circuits, names),
    )


def cosines(vectors: Tensor) -> Tensor:
    """[C, C] of vectors [C, V]."""
    unit = F.normalize(vectors.double(), dim=1)
    return unit @ unit.T


def jaccards(sets: Sequence[set[int]]) -> Tensor:
    """[C, C]: shared members over all members."""
    found = torch.ones(len(sets), len(sets), dtype=torch.float64)
    for i, a in enumerate(sets):
        for j in range(i):
            union = len(a | sets[j])
            found[i, j] = found[j, i] = len(a & sets[j]) / union if union else 0.0
    return found


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _missing(circuits: Sequence[ClassCircuit], names: Sequence[str]) -> tuple[str, ...]:
    empty = [circuit for circuit in circuits if not circuit.coordinates]
    never = [names[circuit.class_index] for circuit in empty if not circuit.rows]
    closed = [names[circuit.class_index] for circuit in empty if circuit.rows]
    notes = []
    if never:
        notes.append(f"Nothing is given {', '.join(never[:10])}, so there is no circuit for it.")
    if closed:
        notes.append(f"No word counts for {', '.join(closed[:10])}, so there is no circuit for it.")
    return tuple(notes)
