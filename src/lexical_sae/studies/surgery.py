"""The surgery study: train, find the words behind a gap, cut them out, compare with LEACE."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from lexical_sae.evaluation.suite import data_hash
from lexical_sae.model.fingerprint import dictionary_hash, model_hash
from lexical_sae.report.finding import Finding
from lexical_sae.studies.study_results import write_results
from lexical_sae.studies.surgery_config import SurgeryConfig
from lexical_sae.studies.surgery_evaluation import evaluate_steps
from lexical_sae.studies.surgery_findings import (
    decomposition,
    front,
    front_points,
    groups_table,
)
from lexical_sae.studies.surgery_subject import SurgerySubject
from lexical_sae.studies.surgery_summary import bounded, summary
from lexical_sae.studies.treatments import Treatments
from lexical_sae.surgery.comparison import (
    compare_treatments,
    comparison_table,
    duel,
    leaks_table,
    rates_table,
)
from lexical_sae.surgery.front import candidate_words, greedy_cut
from lexical_sae.surgery.gap import decompose_gap, flagged_rows
from lexical_sae.surgery.meters import Rows


def run_surgery(config: SurgeryConfig, folder: Path, console: Console) -> dict[str, Any]:
    """The whole study; leaves results.json, report.html and tables in `folder`."""
    study = SurgerySubject(config, folder, console)
    clock = time.perf_counter()
    gold = study.gold(study.choosing)
    groups = study.groups_chosen_on
    said = flagged_rows(study.choosing.state.logits, study.positive)
    parts = decompose_gap(study.choosing.state, study.direction, said, gold, groups)
    taken_apart = (decomposition(parts, study.model), time.perf_counter() - clock)
    clock = time.perf_counter()
    console.print("looking for the smallest cut", style="dim")
    path = greedy_cut(
        Rows(study.choosing.state, study.choosing.labels),
        groups,
        Rows(study.validation.state, study.validation.labels),
        study.positive,
        candidate_words([part.wider for part in parts]),
        aim=config.aim,
        largest_loss=config.largest_loss,
        steps=config.words,
    )
    cut = [step.coordinate for step in path]
    gaps = study.gaps()
    points = front_points(study, path, gaps)
    walked = (front(points), time.perf_counter() - clock)
    clock = time.perf_counter()
    console.print("comparing treatments", style="dim")
    treated = Treatments(study).all(cut)
    task = Rows(study.test.state, study.test.labels)
    compared = compare_treatments(treated, task, study.concept(study.task_test), gaps)
    rows = Rows(study.measured.state, study.measured.labels)
    start = treated[0].validation_accuracy
    erased = [one for one in treated if one.name.startswith("LEACE")]
    duels = [duel(one, path, start, rows, gaps) for one in erased]
    shown = (comparison_table, rates_table, leaks_table)
    tables = (*(table(compared) for table in shown), groups_table(compared[:2]))
    undefined = dict.fromkeys(leak.auc.why for one in compared for leak in one.leaks)
    notes = tuple(f"a leak is not measured: {why}" for why in undefined if why)
    treatments = (Finding(tables=tables, notes=notes), time.perf_counter() - clock)
    evaluated = evaluate_steps(study)
    lines = [
        *summary(compared, duels, study.words(cut)),
        *bounded(points, config.largest_loss),
        *(() if evaluated is None else evaluated.lines),
    ]
    record = {
        "model": model_hash(study.model),
        "dictionary": dictionary_hash(study.model),
        "measured": data_hash(study.data.measured),
        "task": f"{study.run_config.dataset}, test split",
        "seed": config.seed,
    }
    return write_results(
        config,
        folder,
        console,
        "Surgery",
        f"{study.data.measured.name}, {len(study.data.measured):,} rows measured",
        lines,
        {
            ("Which words make the gap", "Where does a group's margin come from?"): taken_apart,
            ("The smallest cut", "How far does the gap fall with each word?"): walked,
            ("Treatments", "What does each way cost and bring?"): treatments,
            **({} if evaluated is None else evaluated.parts),
        },
        seeds=[study.run_config.settings.seed],
        record=record,
        meanings=None if evaluated is None else evaluated.found["metrics"],
        identity=record,
        words=study.words(cut),
        path=[asdict(step) for step in path],
        comparison=[asdict(one) for one in compared],
        at_equal_accuracy=[{**asdict(one), "verdict": one.verdict} for one in duels],
        evaluation=None if evaluated is None else evaluated.found["steps"],
        failed=[] if evaluated is None else evaluated.found["failed"],
    )
