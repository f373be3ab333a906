"""The word-in-context study: do senses tell meanings apart, and what do they cost the task?"""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from lexical_sae.evaluation.word_in_context import (
    WordInContext,
    WordPair,
    measure_word_in_context,
    word_pairs,
)
from lexical_sae.model.expansion import add_senses, fit_routes
from lexical_sae.model.fingerprint import dictionary_hash, model_hash
from lexical_sae.model.lexical_sae import LexicalSAE
from lexical_sae.model.sense_contexts import word_contexts
from lexical_sae.report.finding import Cell, Finding, FindingTable
from lexical_sae.report.study_page import write_study
from lexical_sae.studies.cell_data import Rows, load_cell_data
from lexical_sae.studies.run_folder import trained_run
from lexical_sae.studies.wic_config import SPLITS, WicConfig, run_name, wic_settings
from lexical_sae.studies.wic_figures import pairs_figures, task_figure
from lexical_sae.text.registry import load_dataset
from lexical_sae.training.config import resolve_config
from lexical_sae.training.environment import environment, plain_values, write_json


def run_wic(config: WicConfig, folder: Path, console: Console) -> dict[str, Any]:
    """The whole study; leaves results.json, report.html and tables in `folder`."""
    parts: dict[tuple[str, str], tuple[Finding, float]] = {}
    lines: list[str] = []
    record: dict[str, Any] = {"seed": config.seed}
    measured: dict[str, WordInContext] = {}
    if config.pairs is not None:
        clock = time.perf_counter()
        pairs = {split: _pairs(config.pairs, split) for split in SPLITS}
        model, words = _expanded(config, pairs, console)
        measured = {
            split: measure_word_in_context(model, pairs["train"], pairs[split], config.seed)
            for split in ("validation", "test")
        }
        parts["Same sense or not", "Do the routes of a word tell its meanings apart?"] = (
            Finding(
                tables=tuple(_table(split, found) for split, found in measured.items()),
                dots=pairs_figures(measured),
            ),
            time.perf_counter() - clock,
        )
        lines.append(_line(measured["test"]))
        identity = {"model": model_hash(model), "dictionary": dictionary_hash(model)}
        record |= {**identity, "words": words}
    runs: list[dict[str, Any]] = []
    if config.train is not None:
        clock = time.perf_counter()
        runs = [
            _trained(config, folder, seed, on, console)
            for seed in range(config.seeds)
            for on in (False, True)
        ]
        lines.append(_cost(runs))
        parts["With senses and without", "What do senses do to the task?"] = (
            Finding(tables=(_runs_table(runs),), dots=(task_figure(runs),)),
            time.perf_counter() - clock,
        )
    for line in lines:
        console.print(line, markup=False)
    found = plain_values(
        {
            "study": "wic",
            "config": config.model_dump(),
            "identity": record,
            "summary": lines,
            "word_in_context": {split: asdict(one) for split, one in measured.items()},
            "task": runs,
            "environment": environment({"seed": config.seed}),
        }
    )
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "results.json", found)
    shown = f"{config.pairs}, {measured['test'].pairs:,} pairs" if measured else "the task alone"
    write_study(folder, "Senses of words", shown, lines, parts, record, found["environment"])
    return dict(found)


def _pairs(name: str, split: str) -> list[WordPair]:
    data = load_dataset(name, split, text_column="sentence1", label_column="label_name")
    return word_pairs(data)


def _expanded(
    config: WicConfig, pairs: dict[str, list[WordPair]], console: Console
) -> tuple[LexicalSAE, int]:
    """The untrained model, its routes fitted on unlabelled texts, and how many words have them. Of
    the pairs only the training sentences are among those."""
    texts = [sentence for pair in pairs["train"] for sentence in pair.sentences]
    for name, rows in config.contexts.items():
        texts += load_dataset(name, "train").head(rows).texts
    console.print(f"looking for contexts in {len(texts):,} texts", style="dim")
    model = LexicalSAE.from_backbone(
        config.backbone, ["F", "T"], texts=texts, seed=config.seed, adaptation_seed=0
    )
    assert model.dictionary is not None
    asked = {pair.word for found in pairs.values() for pair in found}
    wanted = sorted({v for word in asked for v in model.dictionary.coordinates(word)[:1]})
    contexts = word_contexts(model, texts, wanted)
    words = [v for v, n in contexts.counts().items() if n >= config.fewest]
    if not words:
        raise ValueError(
            f"None of the {len(asked):,} words stands {config.fewest} times in the texts; expected "
            "more texts in contexts."
        )
    console.print(f"{len(words):,} of {len(asked):,} words get senses", style="dim")
    add_senses(model, words, *fit_routes(contexts, words, config.senses))
    return model, len(words)


def _trained(
    config: WicConfig, folder: Path, seed: int, on: bool, console: Console
) -> dict[str, Any]:
    """The test measures of a run with senses or without; what is trained is kept."""
    run = resolve_config(wic_settings(config, seed, on), where="train")
    data = load_cell_data(run, Rows(config.train_rows))
    metrics = trained_run(run, folder / run_name(seed, on), data, console)
    assert data.test is not None
    return {
        **{"seed": seed, "senses": on, "split": data.test.split},
        **{"test": metrics["test"], "seconds": metrics["seconds"]},
    }


def _table(split: str, found: WordInContext) -> FindingTable:
    columns = ("", "all pairs, %", "95 %", "pairs whose word has senses, %", "95 %")
    rows: list[tuple[Cell, ...]] = []
    for name, one in found.all_pairs.items():
        cells: list[Cell] = [name]
        for estimate in (one, found.covered_pairs[name]):
            if estimate.value is None or estimate.low is None or estimate.high is None:
                cells += [None, None]
                continue
            interval = f"{100 * estimate.low:.1f} to {100 * estimate.high:.1f}"
            cells += [round(100 * estimate.value, 1), interval]
        rows.append(tuple(cells))
    title = f"{split}: {found.pairs:,} pairs, {found.covered:,} with senses"
    return FindingTable(title, columns, tuple(rows))


def _line(found: WordInContext) -> str:
    if not found.covered:
        return "No word of the test pairs has senses."
    shown = [f"{name} {100 * (one.value or 0):.1f} %" for name, one in found.covered_pairs.items()]
    return (
        f"Of {found.covered:,} test pairs whose word has senses, right are: {', '.join(shown)}; "
        f"the routes say 'same' for {100 * found.said_same:.0f} % of them."
    )


def _runs_table(runs: list[dict[str, Any]]) -> FindingTable:
    rows = [
        (
            *(one["seed"], "yes" if one["senses"] else "no"),
            round(100 * one["test"]["accuracy"], 2),
            round(one["test"]["open_words"], 1),
            round(one["seconds"]["training"]),
        )
        for one in runs
    ]
    columns = ("seed", "senses", "accuracy, %", "open words", "seconds")
    return FindingTable(f"Rows of the task's {runs[0]['split']} split", columns, tuple(rows))


def _cost(runs: list[dict[str, Any]]) -> str:
    mean = {}
    for on in (False, True):
        found = [one["test"]["accuracy"] for one in runs if one["senses"] is on]
        mean[on] = 100 * sum(found) / len(found)
    return (
        f"On the task accuracy is {mean[True]:.2f} % with senses and {mean[False]:.2f} % without, "
        f"the mean of {len(runs) // 2} seed{'s' * (len(runs) > 2)}."
    )
