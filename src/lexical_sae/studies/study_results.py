"""What every study leaves behind: results.json in one frame, with its report beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from lexical_sae.report.finding import Finding
from lexical_sae.report.study_page import write_study
from lexical_sae.studies.strict import StudyConfig
from lexical_sae.training.environment import environment, plain_values, write_json

SCHEMA = 1  # of results.json
QUICK = (
    "This is the quick form: it trains for a few steps on few rows, so its numbers show that "
    "everything runs, and nothing else."
)
Parts = Mapping[tuple[str, str], tuple[Finding, float]]


def write_results(
    config: StudyConfig,
    folder: Path,
    console: Console,
    title: str,
    lead: str,
    lines: Sequence[str],
    parts: Parts,
    *,
    seeds: Sequence[int],
    record: Mapping[str, Any],
    only_shown: Parts | None = None,
    meanings: Mapping[str, Any] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """What results.json holds; `more` is put into it as it is. `seeds` are those of the runs,
    `only_shown` are parts of the page that would say in results.json what `more` says there."""
    lines = [*([QUICK] if config.quick else []), *lines]
    for line in lines:
        console.print(line, markup=False)
    found: dict[str, Any] = plain_values(
        {
            "schema": SCHEMA,
            "study": config.study,
            "config": config.model_dump(),
            "seeds": list(seeds),
            "summary": lines,
            **more,
            "parts": {name: finding.to_dict() for (name, _), (finding, _) in parts.items()},
            "environment": environment({str(seed): seed for seed in seeds}),
        }
    )
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "results.json", found)
    every = {**parts, **(only_shown or {})}
    write_study(folder, title, lead, lines, every, record, found["environment"], meanings)
    return found
