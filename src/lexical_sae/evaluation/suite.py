"""All steps over one subject: kept step by step, so that a stopped evaluation goes on."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from lexical_sae.evaluation.explainers import missing
from lexical_sae.evaluation.held_out import notes_on
from lexical_sae.evaluation.metrics import METRICS, checked
from lexical_sae.evaluation.plausibility import COLUMNS
from lexical_sae.evaluation.steps import STEPS, Step, run_step
from lexical_sae.evaluation.subject import Subject
from lexical_sae.model.dictionary import json_hash
from lexical_sae.model.fingerprint import dictionary_hash, model_hash
from lexical_sae.report.finding import Finding
from lexical_sae.text.dataset import TextDataset
from lexical_sae.training.environment import environment, plain_values, write_json

SCHEMA = 1


@dataclass(frozen=True)
class StepRecord:
    step: Step
    finding: Finding
    seconds: float
    resumed: bool  # taken from an earlier evaluation of the same model and texts


def identity_of(subject: Subject) -> dict[str, Any]:
    """What the numbers are of: hashes of model, dictionary and data, and the options."""
    test, choice = subject.test, subject.circuit_choice
    return {
        "model": model_hash(subject.model),
        "dictionary": dictionary_hash(subject.model),
        "data": data_hash(test),
        "dataset": test.name,
        "split": test.split,
        "rows": len(test),
        "unit": subject.unit,
        "train": None if subject.train is None else data_hash(subject.train),
        "twin": None if subject.twin is None else _weights_hash(subject.twin),
        "not_installed": list(missing()),
        "peer_texts": subject.peer_texts,
        "fitted_rows": subject.fitted_rows,
        "seed": subject.seed,
        "circuit_fraction": choice.fraction,
        "circuit_mass": choice.mass,
        "circuit_split": choice.split,
        "circuit_data": None if choice.data is None else data_hash(choice.data),
    }


def step_identity(identity: dict[str, Any], step: Step) -> dict[str, Any]:
    """What a kept step is known by. Choices that it does not see are left out, so that another
    circuit does not cost the hours of the other explainers again."""
    own = {
        name: value
        for name, value in identity.items()
        if step.of_circuits or not name.startswith("circuit_")
    }
    return own if step.form == 1 else {**own, "form": step.form}


def _weights_hash(model: nn.Module) -> str:
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def data_hash(data: TextDataset) -> str:
    """Of the rows, and of the human marks that they may have."""
    marks = [plain_values(data.extra[name]) for name in COLUMNS if name in data.extra]
    rows = [data.texts, data.labels, data.tokens, data.tags, list(data.label_names)]
    return json_hash([*rows, marks])


def run_suite(
    subject: Subject,
    folder: Path,
    steps: Sequence[Step] = STEPS,
    *,
    config: Mapping[str, Any] | None = None,
    started: Callable[[Step, int], None] = lambda step, place: None,
) -> list[StepRecord]:
    """Every step's finding; each is written as soon as it is there. `config` is how the model was
    trained, for the record."""
    identity = identity_of(subject)
    (folder / "steps").mkdir(parents=True, exist_ok=True)
    records = []
    for place, step in enumerate(steps):
        started(step, place)
        file = folder / "steps" / f"{step.name}.json"
        own = step_identity(identity, step)
        before = _read(file, own)
        if before is not None:
            finding, seconds, resumed = (
                Finding.from_dict(before["finding"]),
                before["seconds"],
                True,
            )
        else:
            start = time.perf_counter()
            finding, resumed = run_step(step, subject), False
            checked(finding.metrics)
            seconds = time.perf_counter() - start
            done = {"identity": own, "seconds": seconds, "finding": finding.to_dict()}
            if not any(note.startswith("Not done") for note in finding.notes):
                write_json(file, done)
        records.append(StepRecord(step, finding, seconds, resumed))
    write_json(folder / "evaluation.json", evaluation(identity, records, subject, config))
    return records


def evaluation(
    identity: dict[str, Any],
    records: Sequence[StepRecord],
    subject: Subject,
    config: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The whole result, with the meaning of every number in it."""
    used = {name for record in records for name in record.finding.metrics}
    return {
        "schema": SCHEMA,
        "identity": identity,
        "notes": notes_on(subject.test),
        "failed": [record.step.name for record in records if record.finding.failed],
        "steps": {
            record.step.name: {
                "title": record.step.title,
                "question": record.step.question,
                "seconds": record.seconds,
                **record.finding.to_dict(),
            }
            for record in records
        },
        "metrics": {
            name: {
                "meaning": metric.meaning,
                "low": metric.low,
                "high": metric.high,
                "better": metric.better,
                "best": metric.best,
            }
            for name, metric in METRICS.items()
            if name in used
        },
        "config": None if config is None else dict(config),
        "environment": environment({"seed": subject.seed}),
    }


def _read(file: Path, identity: dict[str, Any]) -> dict[str, Any] | None:
    """An earlier result of the same step on the same model and texts."""
    try:
        found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if found.get("identity") == identity else None
