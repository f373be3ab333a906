"""The long-context study: train both models on short texts, hide needles in long neutral ones."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from lexical_sae.evaluation.held_out import same_labels
from lexical_sae.evaluation.suite import data_hash
from lexical_sae.model.dense_twin import DenseTwin
from lexical_sae.model.fingerprint import dictionary_hash, model_hash
from lexical_sae.model.lexical_sae import LexicalSAE
from lexical_sae.studies.cell_data import Rows, load_cell_data
from lexical_sae.studies.long_context_config import LongContextConfig, long_context_cells
from lexical_sae.studies.long_context_findings import (
    Measured,
    by_length,
    by_place,
    hay_alone,
    measured,
    where_reasons_stand,
)
from lexical_sae.studies.long_context_reading import ARMS, Decisions, decide_all
from lexical_sae.studies.long_context_summary import summary
from lexical_sae.studies.needles import alone, choose_needles, haystacks, only_hay
from lexical_sae.studies.run_folder import trained_run
from lexical_sae.studies.study_results import write_results
from lexical_sae.training.config import resolve_config
from lexical_sae.training.run import Data


def run_long_context(config: LongContextConfig, folder: Path, console: Console) -> dict[str, Any]:
    """The whole study; leaves results.json, report.html and tables in `folder`."""
    run = resolve_config(config.train, where="train")
    data = load_cell_data(run, Rows(config.train_rows))
    test = data.test
    if data.train.task != "classification" or test is None:
        raise ValueError(
            f"{run.dataset} is for {data.train.task}; a long-context study needs texts with labels."
        )
    needles = choose_needles(test, config.needles, min(config.lengths) // 2, config.seed)
    model, twin = _trained(config, data, folder, console)
    labels = list(model.config.labels)
    needles = same_labels(needles, labels)
    found: list[Measured] = []
    hay: dict[int, Decisions] = {}
    clock = time.perf_counter()
    for length in (None, *config.lengths):
        texts = (
            alone(needles)
            if length is None
            else haystacks(needles, length, config.places, config.seed)
        )
        what = "without filler" if length is None else f"of {length:,} words"
        console.print(f"{len(texts):,} texts {what}", style="dim", markup=False)
        if length is not None:
            hay[length] = decide_all(model, twin, only_hay(length, config.fillers, config.seed))
        said = decide_all(model, twin, [one.text for one in texts])
        found.append(measured(texts, said, None if length is None else hay[length]))
    seconds = time.perf_counter() - clock
    lines = summary(found, hay, labels, config.seed, model.config.max_tokens)
    record = {
        "model": model_hash(model),
        "dictionary": dictionary_hash(model),
        "needles": data_hash(needles),
        "task": f"{run.dataset}, {test.split} split",
        "seed": config.seed,
    }
    return write_results(
        config,
        folder,
        console,
        "Long context",
        f"{len(needles):,} needles of {needles.name} in neutral texts of up to "
        f"{max(config.lengths):,} words",
        lines,
        {
            ("Length", "Is the needle found in long texts?"): (
                by_length(found, config.seed),
                seconds,
            ),
            ("Reasons", "Do the reasons point at the needle?"): (
                where_reasons_stand(found, config.seed),
                0.0,
            ),
            ("Place", "Does it matter where the needle is?"): (
                by_place(found, config.places, config.seed),
                0.0,
            ),
            ("Filler", "Is the filler neutral?"): (hay_alone(hay, labels), 0.0),
        },
        seeds=[run.settings.seed],
        record=record,
        identity=record,
        lengths=[_numbers(one, config) for one in found],
        filler={str(length): _said(decisions, labels) for length, decisions in hay.items()},
    )


def _trained(
    config: LongContextConfig, data: Data, folder: Path, console: Console
) -> tuple[LexicalSAE, DenseTwin]:
    """Both models, read to the same number of tokens."""
    cells = long_context_cells(config)
    for cell in cells:
        trained_run(cell.config(), folder / cell.path, data, console)
    ours, twin = (folder / cell.path / "model" for cell in cells)
    model, dense = LexicalSAE.from_pretrained(ours), DenseTwin.from_pretrained(twin)
    if dense.config.max_tokens != model.config.max_tokens:
        raise ValueError(
            f"The dense twin reads {dense.config.max_tokens} tokens and our model "
            f"{model.config.max_tokens}; expected the same: give train.max_length."
        )
    return model, dense


def _said(decisions: Decisions, labels: Sequence[str]) -> dict[str, dict[str, int]]:
    """How many texts each arm calls by each label."""
    return {
        arm: {name: int((decisions.predicted(arm) == i).sum()) for i, name in enumerate(labels)}
        for arm in ARMS
    }


def _numbers(one: Measured, config: LongContextConfig) -> dict[str, Any]:
    places = (
        {}
        if not one.length
        else {
            str(place): {
                **dict(zip(("texts", "place"), one.standing(place), strict=True)),
                **{arm: asdict(one.accuracy(arm, config.seed, place)) for arm in ARMS},
            }
            for place in config.places
        }
    )
    return {
        "words": one.length,
        "texts": len(one.hay),
        "accuracy": {arm: asdict(one.accuracy(arm, config.seed)) for arm in ARMS},
        "above_filler": {arm: asdict(one.above_filler(arm, config.seed)) for arm in ARMS},
        "places": places,
        "seconds": one.decisions.seconds,
        **{name: asdict(value) for name, value in one.estimates(config.seed).items()},
    }
