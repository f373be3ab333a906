"""The study that is run instead where the data of another are not to be had."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from lexical_sae.studies.files import load_study
from lexical_sae.training.assignments import ASSIGNED


def check_fallback(
    missing: Exception,
    instead: Path,
    assignments: Sequence[str],
    *,
    quick: bool,
    seeds: int | None,
    output: Path | None,
) -> None:
    """What a command gives is meant for the study that it names: where the one that is run instead
    does not take it, say so, and what to run."""
    if _takes(instead, assignments, quick=quick, seeds=seeds):
        return
    small = quick and _takes(instead, quick=True)
    kept = [one for one in assignments if _takes(instead, [one], quick=small)]
    counted = seeds is not None and _takes(instead, quick=small, seeds=seeds)
    if not _takes(instead, kept, quick=small, seeds=seeds if counted else None):
        kept, counted = [], False  # each fits alone, but not all of them together
    refused = [f"{ASSIGNED} {shlex.quote(one)}" for one in assignments if one not in kept]
    refused += [f"--seeds {seeds}"] if seeds is not None and not counted else []
    refused += ["--quick"] if quick and not small else []
    command = ["lexical-sae", "run", str(instead), *["--quick"] * small]
    command += [part for one in kept for part in (ASSIGNED, one)]
    command += ["--seeds", str(seeds)] if counted else []
    command += [] if output is None else ["--output", str(output)]
    raise ValueError(
        f"{str(missing).rstrip('.')}; without these data {instead} is run instead, but it does not "
        f"take {' and '.join(refused)}: bring the data, or run: {shlex.join(command)}"
    )


def _takes(
    file: Path, assignments: Sequence[str] = (), *, quick: bool, seeds: int | None = None
) -> bool:
    try:
        load_study(file, assignments, quick=quick, seeds=seeds)
    except ValueError:
        return False
    return True
