"""Is a planted shortcut found, and does one cut undo it? Ten neutral words, a training each.

    python -m benchmarks.planted --json
    python -m benchmarks.planted --json --share 0.9 --elsewhere 0.05 --train-rows 1000 --epochs 2

In each trial a word that has nothing to do with the task is put into 30 % of the training texts of
one class and into 1.5 % of the others: where it stands, it tells the class in 19 of 20 texts. (With
90 % and 5 %, as in the second line, its absence tells as much, and a model learns little else: then
there is nothing that a cut could bring back.) The gap is then taken apart on held-out texts that
have the word at random: is it the top word? Then one `suppress`: of the words that the search for
the smallest cut names, of the planted one alone, and of the top word with `--how unread`, alone and
with the words of the search. How much of what the shortcut costs comes back? What it costs is told
in two ways:

- against the clean model, trained on the same rows with the same seed and budget but nothing
  planted: on the plain test texts, and on the same texts with the word at random;
- within the spoilt model: its accuracy on plain test texts minus that with the word at random.

Runs are kept under --output, and the same command goes on where it was stopped. A clean model
serves every trial of its seed; --seeds 1 trains one for all.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.recovery import pooled_recovery, recovered
from benchmarks.runs import finished_run
from lexical_sae.evaluation.bootstrap import mean_estimate
from lexical_sae.evaluation.reading import Reading, read_texts, spread
from lexical_sae.model.lexical_sae import LexicalSAE
from lexical_sae.studies.planted import plant, plant_everywhere
from lexical_sae.studies.surgery_config import Planted
from lexical_sae.surgery.effect import after_removal
from lexical_sae.surgery.front import candidate_words, greedy_cut
from lexical_sae.surgery.gap import decompose_gap, direction_of, flagged_rows
from lexical_sae.surgery.groups import groups_of_terms
from lexical_sae.surgery.meters import Rows
from lexical_sae.surgery.removal import removal_of
from lexical_sae.surgery.selection import find_words
from lexical_sae.surgery.suppression import without_words
from lexical_sae.text.dataset import TextDataset
from lexical_sae.text.registry import load_splits
from lexical_sae.training.config import parse_assignments, resolve_config
from lexical_sae.training.run import Data

DATASET = "movie_snippets"
LARGEST_LOSS, MOST_WORDS = 0.02, 25
ONE, FOUND, UNREAD, BOTH = (
    *("the word cut", "the words found cut", "the top word unread"),
    "the top word unread and the words found cut",
)
REMEDIES = (ONE, FOUND, UNREAD, BOTH)
PLAIN, AT_RANDOM = "plain texts", "texts with the word at random"
TEXTS = {"plain": PLAIN, "spurious": AT_RANDOM}
WORDS = (
    *("october", "window", "seven", "river", "paper"),
    *("station", "morning", "copper", "village", "ladder"),
)


def trial(
    number: int, splits: dict[str, TextDataset], chosen: argparse.Namespace
) -> dict[str, Any]:
    word, label = WORDS[number], ("positive", "negative")[number % 2]
    seed = number % chosen.seeds
    planted = Planted(word=word, label=label, share=chosen.share, elsewhere=chosen.elsewhere)
    rows = len(splits["train"])
    train = splits["train"].select(spread(rows, chosen.train_rows or rows))
    budget = {"epochs": chosen.epochs, "early_stopping": None, "seed": seed, "precision": "auto"}
    config = resolve_config({"dataset": DATASET, **budget}, parse_assignments(chosen.set))
    where = chosen.output / f"{word}-{label}-{len(train)}-{chosen.share:g}-{chosen.elsewhere:g}"
    beside = chosen.output / f"clean-{len(train)}-seed{seed}"
    console = Console(stderr=True)
    data = Data(plant(train, planted, number), None, splits["test"])
    finished_run(config, where, data, console, f"{word}, planted for {label}")
    plain = Data(train, None, splits["test"])
    finished_run(config, beside, plain, console, f"nothing planted, seed {seed}")
    model = LexicalSAE.from_pretrained(where / "model")
    clean = LexicalSAE.from_pretrained(beside / "model")
    validation, test = splits["validation"], splits["test"]
    choosing = _read(model, plant_everywhere(validation, planted, 100 + number))
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
        candidate_words([part.wider for part in parts]),
        aim="gap and errors",
        largest_loss=LARGEST_LOSS,
        steps=MOST_WORDS,
    )
    assert model.dictionary is not None
    names = model.dictionary.words
    top = [names[v] for part in parts for v, _ in part.top(1)]
    found = [step.coordinate for step in path]
    unread = removal_of(model.dictionary, top[:1], how="unread").unread if top else ()
    remedies = {
        ONE: (find_words(model.dictionary, [word]).coordinates, ()),
        FOUND: (found, ()),
        UNREAD: ((), unread),
        BOTH: (found, unread),
    }
    texts = {PLAIN: test, AT_RANDOM: plant_everywhere(test, planted, 200 + number)}
    accuracy: dict[str, dict[str, float]] = {}
    for name, some in texts.items():
        read = {words: _read(without_words(model, (), words), some) for words in {(), unread}}
        accuracy[name] = {
            "clean": _accuracy(_read(clean, some), ()),
            "spoilt": _accuracy(read[()], ()),
            **{key: _accuracy(read[words], cut) for key, (cut, words) in remedies.items()},
        }
    plain_one, at_random = accuracy[PLAIN], accuracy[AT_RANDOM]
    return {
        "word": word,
        "label": label,
        "top_word": top[0] if top else None,
        "found": top[:1] == [word],
        "cut": [names[v] for v in found],
        "unread": list(unread),
        "accuracy": accuracy,
        "recovered": {
            name: {key: recovered(one["clean"], one["spoilt"], one[key]) for key in REMEDIES}
            for name, one in accuracy.items()
        },
        "recovered within the model": {
            key: recovered(plain_one["spoilt"], at_random["spoilt"], at_random[key])
            for key in REMEDIES
        },
    }


def summary(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """All trials together, within the spoilt model and against the clean one."""
    accuracy = [one["accuracy"] for one in found]
    plain, at_random = ([one[name]["spoilt"] for one in accuracy] for name in (PLAIN, AT_RANDOM))
    return {
        "trials": len(found),
        "found": sum(one["found"] for one in found),
        "within the model": {
            key: asdict(
                pooled_recovery(plain, at_random, [one[AT_RANDOM][key] for one in accuracy])
            )
            for key in REMEDIES
        },
        **{short: _against_clean(found, name) for short, name in TEXTS.items()},
    }


def _against_clean(found: Sequence[dict[str, Any]], texts: str) -> dict[str, Any]:
    accuracy = [one["accuracy"][texts] for one in found]
    values = {name: [one[name] for one in accuracy] for name in accuracy[0]}
    clean, spoilt = values["clean"], values["spoilt"]
    losses = [a - b for a, b in zip(clean, spoilt, strict=True)]
    return {
        "accuracy": {name: sum(many) / len(many) for name, many in values.items()},
        "lost": asdict(mean_estimate(losses)),
        "trials_that_lost": sum(loss > 0 for loss in losses),
        "recovered": {key: asdict(pooled_recovery(clean, spoilt, values[key])) for key in REMEDIES},
        "recovered_by_trial": {
            key: [one["recovered"][texts][key] for one in found] for key in REMEDIES
        },
    }


def _read(model: LexicalSAE, data: TextDataset) -> Reading:
    return read_texts(model, data.texts, data.labels)


def _accuracy(reading: Reading, cut: Sequence[int]) -> float:
    decided = after_removal(reading.state, cut).predicted
    return float((decided == reading.labels).double().mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--trials", type=int, default=len(WORDS), choices=range(1, len(WORDS) + 1))
    parser.add_argument("--train-rows", type=int, help="evenly spread; default all")
    parser.add_argument("--share", type=float, default=0.3, help="of its class's texts, with it")
    parser.add_argument("--elsewhere", type=float, default=0.015, help="of the other texts")
    parser.add_argument("--epochs", type=float, default=1)
    parser.add_argument("--seeds", type=int, default=1, choices=range(1, len(WORDS) + 1))
    parser.add_argument("--set", nargs="*", default=[], help="settings, KEY=VALUE, of all runs")
    parser.add_argument("--output", type=Path, default=Path("runs/planted"))
    parser.add_argument("--json", action="store_true", help="end with one line of JSON")
    chosen = parser.parse_args()
    splits = load_splits(DATASET)
    found = []
    for number in range(chosen.trials):
        found.append(trial(number, splits, chosen))
        print(json.dumps(found[-1]), file=sys.stderr, flush=True)
    result = summary(found)
    print(json.dumps(result) if chosen.json else result)


if __name__ == "__main__":
    main()
