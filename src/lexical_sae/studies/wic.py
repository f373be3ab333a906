"""The word-in-context study: do senses tell meanings apart, and what do they cost the task?"""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from lexical_sae.evaluation.bootstrap import Difference
from lexical_sae.evaluation.word_in_context import (
    ROUTES,
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
from lexical_sae.studies.grid import Outcome
from lexical_sae.studies.study_results import write_results
from lexical_sae.studies.wic_config import SPLITS, WicConfig
from lexical_sae.studies.wic_figures import pairs_figures
from lexical_sae.studies.wic_task import task_finding, task_line, task_outcomes, task_record
from lexical_sae.text.registry import load_dataset


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
                tables=tuple(
                    table
                    for split, found in measured.items()
                    for table in (_table(split, found), _against_table(split, found))
                ),
                dots=pairs_figures(measured),
                notes=("p: sign-flip test over pairs; intervals (95 %) are over pairs too",),
            ),
            time.perf_counter() - clock,
        )
        lines += pairs_lines(measured["test"])
        identity = {"model": model_hash(model), "dictionary": dictionary_hash(model)}
        record |= {**identity, "words": words}
    runs: list[Outcome] = []
    if config.train is not None:
        clock = time.perf_counter()
        runs = task_outcomes(config, folder, console)
        lines.append(task_line(runs))
        parts["With senses and without", "What do senses do to the task?"] = (
            task_finding(runs),
            time.perf_counter() - clock,
        )
    return write_results(
        config,
        folder,
        console,
        "Senses of words",
        f"{config.pairs}, {measured['test'].pairs:,} pairs" if measured else "the task alone",
        lines,
        parts,
        seeds=list(range(config.seeds)) if runs else [config.seed],
        record=record,
        identity=record,
        word_in_context={split: asdict(one) for split, one in measured.items()},
        **task_record(runs),
    )


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


def _against_table(split: str, found: WordInContext) -> FindingTable:
    columns = (
        *(f"{ROUTES} minus", "all pairs, points", "from", "to", "p"),
        *("pairs whose word has senses, points", "from ", "to ", "p "),
    )
    rows: list[tuple[Cell, ...]] = []
    for name in found.all_against:
        both = (found.all_against[name], found.covered_against.get(name))
        cells = [cell for one in both for cell in _points(one)]
        rows.append((name, *cells))
    return FindingTable(f"{split}: the routes against the others", columns, tuple(rows))


def _points(one: Difference | None) -> tuple[float | None, ...]:
    if one is None:
        return (None,) * 4
    return (*(round(100 * value, 1) for value in (one.value, one.low, one.high)), one.p)


def pairs_lines(found: WordInContext) -> list[str]:
    """What is right how often, and whether the routes differ from the rest beyond chance."""
    if not found.covered:
        return ["No word of the test pairs has senses."]
    shown = [f"{name} {100 * (one.value or 0):.1f} %" for name, one in found.covered_pairs.items()]
    apart = [f"against {name} {_apart(one)}" for name, one in found.covered_against.items()]
    return [
        f"Of {found.covered:,} test pairs whose word has senses, right are: {', '.join(shown)}; "
        f"the routes say 'same' for {100 * found.said_same:.0f} % of them.",
        f"On these pairs the routes are, pair by pair: {'; '.join(apart)}.",
    ]


def _apart(one: Difference) -> str:
    value, low, high = (100 * each for each in (one.value, one.low, one.high))
    chance = ", which may be chance" if one.may_be_chance else ""
    return f"{value:+.1f} points ({low:+.1f} to {high:+.1f}, p {one.p:.2g}{chance})"
