"""The steps of an evaluation, in their order: each a function from the subject to a finding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch

from lexical_sae.evaluation.autoencoder_step import measure_autoencoders
from lexical_sae.evaluation.bootstrap import mean_estimate
from lexical_sae.evaluation.calibration import confidence_bins, expected_calibration_error
from lexical_sae.evaluation.completeness import measure_completeness
from lexical_sae.evaluation.dial import measure_dial
from lexical_sae.evaluation.drift import measure_drift
from lexical_sae.evaluation.explainers import (
    AT_INPUT,
    OF_TWIN,
    compare_at_input,
    compare_at_open_words,
)
from lexical_sae.evaluation.faithfulness import measure_faithfulness, problems_of
from lexical_sae.evaluation.identity import measure_identity
from lexical_sae.evaluation.layer_step import measure_layers
from lexical_sae.evaluation.plausibility_step import measure_plausibility
from lexical_sae.evaluation.reading import NotPossible
from lexical_sae.evaluation.scaling import compute_ablation_sparsity, probe_losses
from lexical_sae.evaluation.separation import measure_circuits, measure_separation
from lexical_sae.evaluation.stability_step import measure_stability
from lexical_sae.evaluation.subject import Subject
from lexical_sae.evaluation.tag_stability import measure_tag_stability
from lexical_sae.evaluation.task_step import measure_task
from lexical_sae.report.finding import Cell, Curve, Estimate, Finding, FindingTable
from lexical_sae.training.expectations import nearest_key

ONE_WINDOW = ("input", "layers", "autoencoder", "plausibility", "stability")
"""Steps that do not go by windows, for a model that does."""


@dataclass(frozen=True)
class Step:
    name: str
    title: str
    question: str
    run: Callable[[Subject], Finding]
    tagging: bool = True  # whether it has a meaning for a tagger
    of_circuits: bool = False  # whether the choice of circuits changes it
    form: int = 1  # counted up when it measures otherwise, so that what was kept is not taken


def identity(subject: Subject) -> Finding:
    return measure_identity(subject.reading)


def circuits(subject: Subject) -> Finding:
    assert subject.model.dictionary is not None
    shown = measure_circuits(
        subject.circuit_attributions,
        subject.circuits,
        subject.model.config.labels,
        subject.model.dictionary.words,
    )
    return replace(shown, notes=(_circuits_said(subject), *shown.notes))


def _circuits_said(subject: Subject) -> str:
    choice, rows = subject.circuit_choice, subject.circuit_reading.rows
    unit = "words" if subject.tagging else "texts"
    return f"circuits: {choice.said}, from {rows:,} {unit} of the {choice.split} split"


def completeness(subject: Subject) -> Finding:
    return measure_completeness(subject.reading, subject.model.config.labels, seed=subject.seed)


def separation(subject: Subject) -> Finding:
    labels = subject.model.config.labels
    shown = measure_separation(subject.circuit_attributions, subject.circuits, labels)
    return replace(shown, notes=(_circuits_said(subject), *shown.notes))


def faithfulness(subject: Subject) -> Finding:
    return measure_faithfulness(subject.taken_apart, subject.limits, seed=subject.seed)


def explainers_at_input(subject: Subject) -> Finding:
    own = compare_at_input(subject, subject.model, AT_INPUT)
    if subject.twin is None:
        note = "no dense twin was given (--against RUN), so its explainers are not compared"
        return replace(own, notes=(*own.notes, note))
    try:
        other = compare_at_input(subject, subject.twin, OF_TWIN)
    except NotPossible as reason:  # of the twin alone
        other = Finding(notes=(f"not done: {reason}",))
    said = (f"Of the dense twin: {note}" for note in other.notes)
    return replace(own, tables=(*own.tables, *other.tables), notes=(*own.notes, *said))


def scaling(subject: Subject) -> Finding:
    """Ablation sparsity on the measured texts; probes fitted on train, measured here."""
    spread = [compute_ablation_sparsity(problem) for _, problem in problems_of(subject.taken_apart)]
    known = [value for value in spread if value is not None]
    reading, train = subject.reading, subject.train_reading
    assert subject.model.dictionary is not None
    names, words = subject.model.config.labels, subject.model.dictionary.words
    probes = probe_losses(
        train.state.open_words, train.labels, reading.state.open_words, reading.labels, len(names)
    )
    rows: list[tuple[Cell, ...]] = [
        (names[probe.class_index], words[probe.coordinate], probe.loss, probe.chance)
        for probe in probes
    ]
    loss = float(np.mean([probe.loss for probe in probes])) if probes else None
    return Finding(
        metrics={
            "ablation_sparsity": mean_estimate(known, subject.seed),
            "probe_loss": Estimate(loss, why="" if probes else "no class is in both splits"),
        },
        tables=(
            FindingTable(
                "The best single word for each class",
                ("class", "word", "cross-entropy", "without it"),
                tuple(rows[:30]),
            ),
        ),
    )


def calibration(subject: Subject) -> Finding:
    reading = subject.reading
    confidence, predicted = reading.state.logits.double().softmax(-1).max(-1)
    bins = confidence_bins(confidence.numpy(), (predicted == reading.labels).numpy())
    points = tuple((100 * part.confidence, 100 * part.accuracy) for part in bins)
    names = subject.model.config.labels
    wrong = (predicted != reading.labels).nonzero()[:, 0].tolist()
    wrong.sort(key=lambda row: -float(confidence[row]))
    worst: tuple[dict[str, Cell], ...] = tuple(
        {
            "text": reading.names[row],
            "said": names[int(predicted[row])],
            "right": names[int(reading.labels[row])],
            "probability": float(confidence[row]),
        }
        for row in wrong[:5]
    )
    return Finding(
        metrics={"ece": Estimate(expected_calibration_error(bins))},
        worst=worst,
        curves=(
            Curve(
                "Calibration",
                "probability, %",
                "right, %",
                {"model": points, "ideal": ((0.0, 0.0), (100.0, 100.0))},
            ),
        ),
    )


def stability(subject: Subject) -> Finding:
    return measure_tag_stability(subject) if subject.tagging else measure_stability(subject)


STEPS = (
    Step("task", "Task", "How often is it right?", measure_task, form=2),
    Step("identity", "Identity", "Does every sum add up to its logit?", identity, form=2),
    Step("circuits", "Circuits", "Which words carry each class?", circuits, of_circuits=True),
    Step("completeness", "Completeness", "Do few words decide as all do?", completeness, form=2),
    Step(
        "separation",
        "Separation",
        "Do classes use different words?",
        separation,
        of_circuits=True,
    ),
    Step("faithfulness", "Faithfulness", "Does the decision go with its words?", faithfulness),
    Step(
        "explainers",
        "Explainers",
        "Which explainer finds the words that matter?",
        compare_at_open_words,
    ),
    Step(
        "input",
        "Explainers at the input",
        "And at the words of the text?",
        explainers_at_input,
        tagging=False,
        form=3,
    ),
    Step("layers", "Layers", "What does each layer add?", measure_layers),
    Step(
        "autoencoder",
        "Sparse autoencoders",
        "What does a sparse autoencoder lose that is fitted to the dense twin afterwards?",
        measure_autoencoders,
        tagging=False,
    ),
    Step("scaling", "Scaling", "How few words does an effect spread over?", scaling),
    Step("dial", "Sparsity dial", "What if fewer or more words were open?", measure_dial),
    Step(
        "plausibility",
        "Plausibility",
        "Do people mark the same words?",
        measure_plausibility,
        tagging=False,
    ),
    Step("calibration", "Calibration", "Do probabilities mean what they say?", calibration),
    Step("stability", "Stability", "Is it the same tomorrow, in other words?", stability),
    Step("drift", "Meaning", "Is a coordinate still about its word?", measure_drift),
)


def chosen_steps(names: str | None, task: str = "classification") -> tuple[Step, ...]:
    """All steps of a task, or those named, in their order."""
    steps = tuple(step for step in STEPS if step.tagging or task != "tagging")
    if names is None:
        return steps
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    known = [step.name for step in steps]
    for name in wanted:
        if name in known:
            continue
        if any(step.name == name for step in STEPS):
            raise ValueError(f"The step {name!r} is for classifiers, not for taggers of words.")
        raise ValueError(f"{name!r} is no step; {nearest_key(name, known)}")
    return tuple(step for step in steps if step.name in wanted)


def run_step(step: Step, subject: Subject) -> Finding:
    """What a step could not do it says, and the evaluation goes on."""
    try:
        with torch.no_grad():
            found = step.run(subject)
    except (NotPossible, ImportError) as reason:
        return Finding(notes=(f"Not done: {reason}",))
    if subject.model.config.windows and step.name in ONE_WINDOW:
        note = "what masks tokens, looks into layers or reads the dense twin sees the first window"
        return replace(found, notes=(*found.notes, f"{note} of a long text only"))
    return found
