"""Is a planted shortcut found, and does one cut undo it? Ten neutral words, one training each.

    python -m benchmarks.planted --json

In each trial a word that has nothing to do with the task is put into 90 % of the training texts of
one class and into 5 % of the others. The gap is then taken apart on held-out texts that have the
word at random: is it the top word? After one `suppress` of the word, how much of the accuracy that
the shortcut costs on test texts with the word at random comes back? Runs are kept under --output.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.runs import finished_run
from lexical_sae.evaluation.reading import read_texts, spread
from lexical_sae.model.lexical_sae import LexicalSAE
from lexical_sae.studies.planted import plant, plant_everywhere
from lexical_sae.studies.surgery_config import Planted
from lexical_sae.surgery.gap import decompose_gap, direction_of, positive_scores
from lexical_sae.surgery.groups import groups_of_terms
from lexical_sae.surgery.suppression import suppress_words
from lexical_sae.text.dataset import TextDataset
from lexical_sae.text.registry import load_splits
from lexical_sae.training.config import resolve_config
from lexical_sae.training.run import Data

DATASET = "movie_snippets"
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
    top = _top_word(model, plant_everywhere(splits["validation"], planted, 100 + number), planted)
    test = splits["test"]
    spoilt = plant_everywhere(test, planted, 200 + number)
    cut = suppress_words(model, [word]).view
    accuracy = {
        "without the word": _accuracy(model, test),
        "word at random": _accuracy(model, spoilt),
        "word at random, cut": _accuracy(cut, spoilt),
    }
    lost = accuracy["without the word"] - accuracy["word at random"]
    back = accuracy["word at random, cut"] - accuracy["word at random"]
    return {
        "word": word,
        "label": label,
        "top_word": top,
        "found": top == word,
        **{name: round(100 * value, 2) for name, value in accuracy.items()},
        "recovered": back / lost if lost > 0 else None,
    }


def _top_word(model: LexicalSAE, data: TextDataset, planted: Planted) -> str | None:
    """The word that makes most of the gap of texts that hold the planted one."""
    reading = read_texts(model, data.texts, data.labels)
    place = model.config.labels.index(planted.label)
    said = positive_scores(reading.state.logits, [place]) >= 0.5
    parts = decompose_gap(
        reading.state,
        direction_of(model.config.labels, [planted.label]),
        said,
        reading.labels.numpy() == place,
        groups_of_terms(data.texts, {planted.word: [planted.word]}),
    )
    top = parts[0].top(1) if parts else []
    assert model.dictionary is not None
    return model.dictionary.words[top[0][0]] if top else None


def _accuracy(model: LexicalSAE, data: TextDataset) -> float:
    reading = read_texts(model, data.texts, data.labels)
    return float((reading.state.predicted == reading.labels).double().mean())


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
    known = [one["recovered"] for one in found if one["recovered"] is not None]
    result = {
        "trials": len(found),
        "found": sum(one["found"] for one in found),
        "recovered_least": min(known, default=None),
        "recovered_mean": sum(known) / len(known) if known else None,
    }
    print(json.dumps(result) if chosen.json else result)


if __name__ == "__main__":
    main()
