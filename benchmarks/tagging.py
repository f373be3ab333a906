"""Our tagger against its dense twin on CoNLL-2003: the same backbone, data, seed and budget.

    python -m benchmarks.tagging --json
    python -m benchmarks.tagging --train-rows 2000 --split validation

Runs are kept under --output and not repeated once they are finished. Times are those of training
alone, the pass over the untrained model included; the adaptation of the lexical head is cached and
shown beside it. Memory: one training step of 16 windows of 128 tokens in a process of its own, the
kernel's peak above the model and the optimiser's state.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from benchmarks.peak import peak_extra_bytes
from benchmarks.runs import finished_run
from lexical_sae.evaluation.held_out import evaluate_model
from lexical_sae.model.lexical_sae import LexicalSAE
from lexical_sae.text.registry import load_splits
from lexical_sae.training.batching import IGNORED
from lexical_sae.training.config import RunConfig, parse_assignments, resolve_config
from lexical_sae.training.decisions import decide
from lexical_sae.training.fit import build_model
from lexical_sae.training.guide import build_guide, watching
from lexical_sae.training.objective import Objective
from lexical_sae.training.optimizers import build_optimizer, parameter_groups
from lexical_sae.training.preparation import prepare_model
from lexical_sae.training.run import Data

DATASET = "conll2003"
TOPK = 32
BATCH, LENGTH = 16, 128
MEMORY_SENTENCES = 512  # enough to calibrate on, and to adapt with


def config_of(seed: int, twin: bool, assignments: list[str]) -> RunConfig:
    given = {"dataset": DATASET, "early_stopping": None, "seed": seed, "dense_twin": twin}
    given["precision"] = "auto"  # for both: bfloat16 where the processor has it
    return resolve_config(given, parse_assignments(assignments))


def load(split: str, train_rows: int | None) -> Data:
    splits = load_splits(DATASET)
    train = splits["train"] if train_rows is None else splits["train"].head(train_rows)
    return Data(replace(train, notes=()), None, splits[split])


def memory_child(assignments: list[str]) -> float:
    """GiB of one training step in the circuit phase, above the model and the optimiser's state."""
    config = config_of(0, False, [*assignments, "anchor=null"])
    train = load_splits(DATASET)["train"].head(MEMORY_SENTENCES)
    texts = [" ".join(words) for words in train.tokens]
    model = build_model(config, train.label_names, texts, "tagging")
    prepare_model(model, config.settings)
    classes = len(train.label_names)
    guide = build_guide(model, config.settings, classes)
    objective = Objective(
        config.settings, model.lexical, classes, steps_per_epoch=10, steps=100, guide=guide
    )
    objective.step = objective.warmup_steps
    objective.geco.start(0.5)
    groups = parameter_groups(model, config.settings, objective.parameters(), guide)
    optimizer = build_optimizer(groups, config.settings)
    ids = torch.tensor(model.encode(texts).input_ids.flatten().tolist())
    words = ids[~torch.isin(ids, torch.tensor(model.config.special_token_ids))]

    def step(batch: int, length: int) -> None:
        input_ids = words[: batch * length].view(batch, length)
        labels = torch.randint(0, classes, (batch, length))
        labels[:, ::4] = IGNORED  # about as many tokens as do not start a word
        inputs = {
            "input_ids": input_ids,
            "attention_mask": torch.ones_like(input_ids),
            "labels": labels,
            "index": torch.arange(batch),
        }
        objective(*decide(model, inputs, guide, config.settings.precision)).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    model.train()
    with watching(guide, model):
        step(2, 8)  # the optimiser makes its state
        return peak_extra_bytes(lambda: step(BATCH, LENGTH)) / 2**30


def measure(chosen: argparse.Namespace) -> dict[str, Any]:
    console = Console(stderr=True)
    data = load(chosen.split, chosen.train_rows)
    rows, output = len(data.train), chosen.output
    found, where = {}, {}
    for name in ("twin", "ours"):
        config = config_of(chosen.seed, name == "twin", chosen.set)
        where[name] = output / chosen.split / f"{name}-{rows}-seed{chosen.seed}"
        title = f"{name}, {rows:,} sentences"
        found[name] = finished_run(config, where[name], data, console, title)
    model = LexicalSAE.from_pretrained(where["ours"] / "model")
    model.keep_per_position(TOPK)
    assert data.test is not None
    capped = evaluate_model(model, data.test)
    child = [sys.executable, "-m", "benchmarks.tagging", "--memory-child", "--set", *chosen.set]
    # three processes: how much the heap keeps moves by a tenth from one to the next
    runs = [subprocess.run(child, check=True, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    memory = statistics.median(float(run.stdout.splitlines()[-1]) for run in runs)
    ours, twin = found["ours"], found["twin"]
    return {
        "f1": 100 * ours["test"]["f1"],
        "f1_twin": 100 * twin["test"]["f1"],
        "open_words": ours["test"]["open_words"],
        "f1_topk32": 100 * capped["f1"],
        "open_words_topk32": capped["open_words"],
        "max_residual": ours["test"]["max_residual"],
        "max_relative_residual": ours["test"]["max_relative_residual"],
        "memory_gib": memory,
        "time_ratio": ours["seconds"]["training"] / twin["seconds"]["training"],
        "cpu_ratio": ours["seconds"]["training_cpu"] / twin["seconds"]["training_cpu"],
        "train_rows": rows,
        "circuit_agreement": ours["test"]["circuit_agreement"],
        "token_accuracy": 100 * ours["test"]["accuracy"],
        "token_accuracy_twin": 100 * twin["test"]["accuracy"],
        "seconds": ours["seconds"]["training"],
        "seconds_twin": twin["seconds"]["training"],
        "preparation_seconds": ours["seconds"]["preparation"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--train-rows", type=int, help="use the first sentences only")
    parser.add_argument("--split", default="test", choices=("test", "validation"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--set", nargs="*", default=[], help="settings, KEY=VALUE, for both")
    parser.add_argument("--output", type=Path, default=Path("runs/tagging"))
    parser.add_argument("--json", action="store_true", help="end with one line of JSON")
    parser.add_argument("--memory-child", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.memory_child:
        print(memory_child(chosen.set))
        return
    found = measure(chosen)
    for name, value in found.items():
        print(f"{name:22} {value:.6g}", file=sys.stderr)
    if chosen.json:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
