"""Is a planted shortcut found, and does one cut undo it? Ten neutral words, one training each.

    python -m benchmarks.planted --json

In each trial a word that has nothing to do with the task is put into 90 % of the training texts of
one class and into 5 % of the others. The gap is then taken apart on held-out texts that have the
word at random: is it the top word? After one `suppress` of the words that the search for the
smallest cut names (and of the planted one alone, beside it), how much comes back of the accuracy
that the shortcut costs on test texts with the word at random? Runs are kept under --output.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.runs import finished_run
from lexical_sae.evaluation.reading import Reading, read_texts, spread
from lexical_sae.model.lexical_sae import LexicalSAE
from lexical_sae.studies.planted import plant, plant_everywhere
from lexical_sae.studies.surgery_config import Planted
from lexical_sae.surgery.effect import after_removal
from lexical_sae.surgery.front import Rows, candidate_words, greedy_cut
from lexical_sae.surgery.gap import decompose_gap, direction_of, flagged_rows
from lexical_sae.surgery.groups import groups_of_terms
from lexical_sae.surgery.selection import find_words
from lexical_sae.text.dataset import TextDataset
from lexical_sae.text.registry import load_splits
from lexical_sae.training.config import resolve_config
from lexical_sae.training.run import Data

DATASET = "movie_snippets"
LARGEST_LOSS, MOST_WORDS = 0.02, 10
WORDS = (
    *("october", "window", "seven", "river", "paper"),
    *("station", "morning", "copper", "village", "ladder"),
)


def trial(
    number: int, splits: dict[str, TextDataset], chosen: argparse.Namespace
) -> dict[str, Any]:
    word, label = WORDS[number], ("positive", "negative")[number % 2]
    planted = Planted(word=word, label=label)
    train = splits["train"].select(spread(len(splits["train"]), chosen.train_rows))
    config = resolve_config(
        {"dataset": DATASET, "epochs": chosen.epochs, "early_stopping": None, "seed": number}
    )
    where = chosen.output / f"{word}-{label}-{len(train)}"
    console = Console(stderr=True)
    data = Data(plant(train, planted, number), None, splits["test"])
    finished_run(config, where, data, console, f"{word}, planted for {label}")
    model = LexicalSAE.from_pretrained(where / "model")
    validation, test = splits["validation"], splits["test"]
    choosing = _read(model, plant_everywhere(validation, planted, 100 + number))
    measured = _read(model, plant_everywhere(test, planted, 200 + number))
    place = model.config.labels.index(label)
    groups = groups_of_terms(choosing.names, {word: [word]})
    parts = decompose_gap(
        choosing.state,
        direction_of(model.config.labels, [label]),
        flagged_rows(choosing.state.logits, [place]),
        choosing.labels.numpy() == place,
        groups,
    )
    held = _read(model, validation)
    path = greedy_cut(
        Rows(choosing.state, choosing.labels),
        groups,
        Rows(held.state, held.labels),
        [place],
        candidate_words([part.words for part in parts]),
        largest_loss=LARGEST_LOSS,
        steps=MOST_WORDS,
    )
    assert model.dictionary is not None
    names = model.dictionary.words
    top = [names[v] for part in parts for v, _ in part.top(1)]
    accuracy = {
        "without the word": _accuracy(_read(model, test), ()),
        "word at random": _accuracy(measured, ()),
        "the word cut": _accuracy(measured, find_words(model.dictionary, [word]).coordinates),
        "the words found cut": _accuracy(measured, [step.coordinate for step in path]),
    }
    lost = accuracy["without the word"] - accuracy["word at random"]
    back = {
        f"recovered by {name}": (accuracy[f"{name} cut"] - accuracy["word at random"]) / lost
        if lost > 0
        else None
        for name in ("the word", "the words found")
    }
    return {
        "word": word,
        "label": label,
        "top_word": top[0] if top else None,
        "found": top[:1] == [word],
        "cut": [names[step.coordinate] for step in path],
        **{name: round(100 * value, 2) for name, value in accuracy.items()},
        **back,
    }


def _read(model: LexicalSAE, data: TextDataset) -> Reading:
    return read_texts(model, data.texts, data.labels)


def _accuracy(reading: Reading, cut: Sequence[int]) -> float:
    decided = after_removal(reading.state, cut).predicted
    return float((decided == reading.labels).double().mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--trials", type=int, default=len(WORDS), choices=range(1, len(WORDS) + 1))
    parser.add_argument("--train-rows", type=int, default=1000)
    parser.add_argument("--epochs", type=float, default=2)
    parser.add_argument("--output", type=Path, default=Path("runs/planted"))
    parser.add_argument("--json", action="store_true", help="end with one line of JSON")
    chosen = parser.parse_args()
    splits = load_splits(DATASET)
    found = [trial(number, splits, chosen) for number in range(chosen.trials)]
    for one in found:
        print(json.dumps(one), file=sys.stderr)
    key = "recovered by the words found"
    known = [one[key] for one in found if one[key] is not None]
    result = {
        "trials": len(found),
        "found": sum(one["found"] for one in found),
        "recovered_least": min(known, default=None),
        "recovered_mean": sum(known) / len(known) if known else None,
    }
    print(json.dumps(result) if chosen.json else result)


if __name__ == "__main__":
    main()
