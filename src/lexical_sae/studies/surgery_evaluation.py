"""Steps of the evaluation as a part of a surgery study, on the trained model before any cut."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from lexical_sae.evaluation.drift import untrained_model
from lexical_sae.evaluation.steps import chosen_steps
from lexical_sae.evaluation.subject import Subject
from lexical_sae.evaluation.suite import run_suite
from lexical_sae.report.evaluation_page import summary
from lexical_sae.report.finding import Finding
from lexical_sae.studies.surgery_subject import SurgerySubject


@dataclass(frozen=True)
class Evaluated:
    """`found` is what `lexical-sae evaluate` writes."""

    found: dict[str, Any]
    lines: tuple[str, ...]
    parts: dict[tuple[str, str], tuple[Finding, float]]  # as the study's page takes them


def evaluate_steps(study: SurgerySubject) -> Evaluated | None:
    """On the task's test rows; None if the study asks for none. A step that was done before on the
    same model and rows is not done again."""
    if study.config.evaluate is None:
        return None
    steps = chosen_steps(",".join(study.config.evaluate))
    subject = Subject(
        study.model,
        study.task_test,
        study.data.task.train,
        untrained=lambda: untrained_model(study.run_config, study.model),
        seed=study.config.seed,
    )
    where = study.folder / "run" / "evaluation"
    run_suite(
        subject,
        where,
        steps,
        started=lambda step, place: study.console.print(f"evaluating: {step.title}", style="dim"),
    )
    found: dict[str, Any] = json.loads((where / "evaluation.json").read_text(encoding="utf-8"))
    failed = [f"The check of {name} failed." for name in found["failed"]]
    parts = {
        (step["title"], step["question"]): (Finding.from_dict(dict(step)), float(step["seconds"]))
        for step in found["steps"].values()
    }
    return Evaluated(found, (*summary(found), *failed), parts)
