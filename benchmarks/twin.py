"""Our model against its dense twin: the same backbone, data, seeds, batches and budget.

    python -m benchmarks.twin --json
    python -m benchmarks.twin --datasets movie_snippets --seeds 1 --train-rows 2000
    python -m benchmarks.twin --datasets movie_snippets --seeds 1 --arms cis lexical-sae cajt
    python -m benchmarks.twin --datasets movie_snippets --seeds 1 --development --arms "jump gate"
    python -m benchmarks.twin --datasets sst2 --seeds 8 --set precision=fp32

--development is for choices: it trains on 4,000 rows of the training split and measures on others
of it, so that the test split chooses nothing. Every run has a folder of its own under --output
and is not repeated once it is finished; one that was stopped goes on where it was. Times are
those of training alone, the pass over the untrained model included; adaptation of the lexical
head is cached and shown beside it.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.runs import finished_run
from lexical_sae.text.dataset import TextDataset
from lexical_sae.text.registry import load_splits
from lexical_sae.training.assignments import laid_over
from lexical_sae.training.batch_size import LARGEST
from lexical_sae.training.config import RunConfig, parse_assignments, resolve_config
from lexical_sae.training.run import Data

DEVELOPMENT_ROWS = 4000
TWIN = "twin"
OURS = "default"


@dataclass(frozen=True)
class Setup:
    """A dataset of the comparison: the rows, the split that is tested, the budget."""

    name: str
    test: str
    epochs: float
    rows: int | None = None
    target_words: int = 32
    seeds: int = 1
    own: dict[str, Any] = field(default_factory=dict)  # further settings, of the twin too


SETUPS = {
    setup.name: setup
    for setup in (
        Setup("movie_snippets", "test", epochs=2, seeds=3),
        # its training rows are phrases; the sentences of validation open a fifth more words
        Setup("sst2", "validation", epochs=1, rows=20_000, target_words=30, seeds=3),
        # heads of 77 classes have more to learn: chosen on training rows (docs/choices.md)
        Setup("banking77", "test", epochs=4, target_words=60, own={"head_rate_factor": 10}),
        Setup("ag_news", "test", epochs=1, rows=8_000, target_words=48),
    )
}

OFF = {"completeness": None, "separation": None, "anchor": None}
# The words before they were mended: they may open anywhere, and the dictionary moves.
FREE = {"model": {"positions": "words"}, "dictionary_rate_factor": 1}
# Changes to the default recipe, by the name of the arm.
ARMS: dict[str, dict[str, Any]] = {
    OURS: {},
    TWIN: {"dense_twin": True},
    "CE only": {**OFF, "sparsity": None},
    "CE and sparsity": OFF,
    "CE and sparsity, free words": {**OFF, **FREE},
    "without completeness": {"completeness": None},
    "without separation": {"separation": None},
    "without anchor": {"anchor": None},
    "without guide": {"guide": None},
    "jump gate": {"model": {"gate": "jump"}, "sparsity": {"form": "target_l0"}},
    "target_l0": {"sparsity": {"form": "target_l0"}},
    "all positions": {"model": {"positions": "words"}},
    "all positions, content term": {"model": {"positions": "words"}, "content": {"weight": 0.1}},
    "moving dictionary": {"dictionary_rate_factor": 1},
    "stronger anchor": {"anchor": {"weight": 0.5}},
    "cis": {"recipe": "cis"},
    "lexical-sae": {"recipe": "lexical-sae"},
    "cajt": {"recipe": "cajt"},
}


def load(setup: Setup, train_rows: int | None, development: bool = False) -> Data:
    """No validation split: nothing is chosen by it here, and the test split chooses nothing."""
    splits = load_splits(setup.name)
    train, test = splits["train"], splits[setup.test]
    if development:
        order = list(range(len(train)))
        random.Random(7).shuffle(order)
        held_out = order[DEVELOPMENT_ROWS : 2 * DEVELOPMENT_ROWS + 1000]
        chosen = train.select(sorted(order[:DEVELOPMENT_ROWS]))
        return Data(
            replace(chosen, notes=()), None, replace(train.select(sorted(held_out)), notes=())
        )
    rows = train_rows if train_rows is not None else setup.rows
    if rows is not None:
        train = _fair_rows(train, rows) if setup.rows is None else train.head(rows)
    return Data(replace(train, notes=()), None, test)


def _fair_rows(train: TextDataset, rows: int) -> TextDataset:
    """Evenly spread: the files of some datasets are sorted by class."""
    stride = max(1, len(train) // rows)
    return train.select(range(0, len(train), stride)).head(rows)


def config_of(setup: Setup, arm: str, seed: int, assignments: Sequence[str] = ()) -> RunConfig:
    # one batch size for all: left open, it would follow the memory that happens to be free; and
    # one precision, bfloat16 where the processor has it
    budget: dict[str, Any] = {"epochs": setup.epochs, "early_stopping": None, "seed": seed}
    budget |= {"batch_size": LARGEST, "precision": "auto"}
    # a published recipe has rates and a target of its own, which sets its start and where its terms
    # fade
    wanted = {} if "recipe" in ARMS[arm] else {"target_words": setup.target_words, **setup.own}
    given = laid_over({"dataset": setup.name, **budget, **wanted}, ARMS[arm])
    return resolve_config(given, parse_assignments(list(assignments)))


def measured(
    setup: Setup,
    arm: str,
    seed: int,
    data: Data,
    folder: Path,
    console: Console,
    assignments: Sequence[str] = (),
) -> dict[str, Any]:
    """The metrics of one run, trained now or before."""
    rows = len(data.train)
    where = folder / setup.name / f"{arm.replace(' ', '-')}-{rows}-seed{seed}"
    title = f"{setup.name}, {arm}, seed {seed}, {rows:,} rows"
    config = config_of(setup, arm, seed, assignments)
    return finished_run(config, where, data, console, title)


def compare(runs: Sequence[dict[str, Any]], twins: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Means over seeds; the difference and the ratio are those of pairs with the same seed."""
    pairs = list(zip(runs, twins, strict=True))
    delta = [100 * (run["test"]["accuracy"] - twin["test"]["accuracy"]) for run, twin in pairs]
    ratio = [run["seconds"]["training"] / twin["seconds"]["training"] for run, twin in pairs]
    known = [pair for pair in pairs if all("training_cpu" in one["seconds"] for one in pair)]
    worked = [a["seconds"]["training_cpu"] / b["seconds"]["training_cpu"] for a, b in known]

    def mean(name: str) -> float | None:
        values = [run["test"][name] for run in runs if name in run["test"]]
        return statistics.fmean(values) if values else None

    return {
        "accuracy": mean("accuracy"),
        "twin_accuracy": statistics.fmean(twin["test"]["accuracy"] for twin in twins),
        "accuracy_delta": statistics.fmean(delta),
        "open_words": mean("open_words"),
        "time_ratio": statistics.fmean(ratio),
        "cpu_ratio": statistics.fmean(worked) if worked else None,
        "circuit_agreement": mean("circuit_agreement"),
        "seeds": len(runs),
        "deltas": delta,
        "content_share": mean("content_share"),
        "reference_overlap": mean("reference_overlap"),
        "class_cosine": mean("class_cosine"),
        "seconds": statistics.fmean(run["seconds"]["training"] for run in runs),
        "twin_seconds": statistics.fmean(twin["seconds"]["training"] for twin in twins),
        "preparation_seconds": max(run["seconds"]["preparation"] for run in runs),
    }


def show(console: Console, results: dict[str, dict[str, Any]]) -> None:
    table = Table(box=None, pad_edge=False)
    for heading in (
        *("", "accuracy", "twin", "delta", "open words", "time", "circuit", "content"),
        *("overlap", "cosine", "seeds"),
    ):
        table.add_column(heading, justify="left" if not heading else "right")
    for name, found in results.items():
        table.add_row(
            name,
            _percent(found["accuracy"]),
            _percent(found["twin_accuracy"]),
            f"{found['accuracy_delta']:+.2f}",
            "-" if found["open_words"] is None else f"{found['open_words']:.1f}",
            f"{found['time_ratio']:.2f}x",
            _percent(found["circuit_agreement"]),
            _percent(found["content_share"]),
            _percent(found["reference_overlap"]),
            "-" if found["class_cosine"] is None else f"{found['class_cosine']:.3f}",
            str(found["seeds"]),
        )
    console.print(table)


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--datasets", nargs="+", default=list(SETUPS), choices=list(SETUPS))
    parser.add_argument("--arms", nargs="+", default=[OURS], choices=list(ARMS))
    parser.add_argument("--seeds", type=int, help="runs per arm; default by dataset")
    parser.add_argument("--train-rows", type=int, help="use a part of the training rows")
    parser.add_argument("--development", action="store_true", help="measure on training rows")
    parser.add_argument("--set", nargs="*", default=[], help="settings, KEY=VALUE, for all arms")
    parser.add_argument("--output", type=Path, default=Path("runs/twin"))
    parser.add_argument("--json", action="store_true", help="end with one line of JSON")
    chosen = parser.parse_args()
    console = Console(stderr=True)
    results: dict[str, dict[str, Any]] = {}
    output = chosen.output / "development" if chosen.development else chosen.output
    for name in chosen.datasets:
        setup = SETUPS[name]
        data = load(setup, chosen.train_rows, chosen.development)
        seeds = range(chosen.seeds or setup.seeds)
        runs: dict[str, list[dict[str, Any]]] = {arm: [] for arm in (TWIN, *chosen.arms)}
        for seed in seeds:  # twin and arms in turn, so that a busy hour hits both alike
            for arm, found in runs.items():
                run = measured(setup, arm, seed, data, output, console, chosen.set)
                found.append(run)
        for arm in chosen.arms:
            key = name if arm == OURS else f"{name}, {arm}"
            results[key] = compare(runs[arm], runs[TWIN])
    show(console, results)
    if chosen.json:
        print(json.dumps(results))


if __name__ == "__main__":
    main()
