"""The removal certificate: what is gone, that it cannot matter, what that does, what still leaks.

Everything in it was measured on the model and the data whose hashes it names; `verification`
measures it again. What was not measured is not claimed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from lexical_sae.evaluation.bootstrap import mean_estimate
from lexical_sae.evaluation.reading import Reading, spread
from lexical_sae.evaluation.suite import data_hash
from lexical_sae.evaluation.tag_reading import read_split
from lexical_sae.model.fingerprint import dictionary_hash, model_hash
from lexical_sae.surgery.effect import effect_of
from lexical_sae.surgery.groups import groups_of_terms
from lexical_sae.surgery.leak import measure_leak, sparse_rows
from lexical_sae.surgery.non_interference import NonInterference, check_non_interference
from lexical_sae.surgery.suppression import suppressed_coordinates, without_words
from lexical_sae.surgery.unread import UnreadTest, check_unread, contributed_by
from lexical_sae.text.unread import without_unread
from lexical_sae.training.environment import environment, plain_values

if TYPE_CHECKING:
    from lexical_sae.model.lexical_sae import LexicalSAE
    from lexical_sae.text.dataset import TextDataset

FORMAT, VERSION = "lexical-sae removal certificate", 2
MOST_ROWS = 2000  # of each split, evenly spread
NOT_CLAIMED = (
    "that what the words meant is gone: see the leak",
    "that removing a word changes a logit by minus its contribution: see the two changes",
    "anything about texts that were not measured, but that cut coordinates and words that are left "
    "unread cannot matter in any",
)

Advance = Callable[[int], None]


def certify_removal(
    model: LexicalSAE,
    test: TextDataset,
    train: TextDataset | None,
    *,
    seed: int = 0,
    advance: Advance = lambda rows: None,
) -> dict[str, Any]:
    """The certificate of a model with suppressed words, without a signature."""
    assert model.dictionary is not None
    cut, unread = suppressed_coordinates(model), tuple(model.config.unread)
    if not cut and not unread:
        raise ValueError(
            "No word is cut out of this model, so there is nothing to certify; use "
            "`lexical-sae suppress` first."
        )
    test, train = some_rows(test), None if train is None else some_rows(train)
    after = read_split(model, test, advance)
    before = read_split(_restored(model), test, advance)
    texts, whole = _texts(test), _restored(model)
    filled, read = NonInterference(0, 0), UnreadTest((), (), 0, 0)
    gave = anew = None  # what was opened by words that are no longer read, and the texts with them
    if cut:
        filled = check_non_interference(model, texts, seed=seed, advance=advance)
    if unread:
        read = check_unread(model, texts, seed=seed, advance=advance)
        gave = contributed_by(whole, texts, unread, cut, advance)
        anew = torch.tensor([bool(without_unread(text, unread).gone) for text in texts])
    found = {
        "format": FORMAT,
        "version": VERSION,
        "model": {"hash": model_hash(model), "dictionary": dictionary_hash(model)},
        "suppressed": [
            {"coordinate": v, "token_id": model.dictionary.token_ids[v], "word": word}
            for v, word in ((v, model.dictionary.words[v]) for v in cut)
        ],
        "data": data_identity(test, train),
        "non_interference": asdict(filled),
        "unread": asdict(read),
        "effect": effect_of(before.state, after.state, cut, gave, anew).summary(),
        "accuracy": _accuracy(before, after, seed),
        "leak": _leak(model, before, after, test, train, seed, advance),
        "not_claimed": list(NOT_CLAIMED),
        "seed": seed,
        "environment": environment({"seed": seed}),
    }
    plain: dict[str, Any] = plain_values(found)
    return plain


def _restored(model: LexicalSAE) -> LexicalSAE:
    """The same model with its words back, for comparison."""
    view = without_words(model, ())
    view.restore()
    return view


def some_rows(data: TextDataset) -> TextDataset:
    """Those that a certificate is about."""
    return data.select(spread(len(data), MOST_ROWS))


def data_identity(test: TextDataset, train: TextDataset | None) -> dict[str, Any]:
    """What was measured on, and what probes were fitted on."""
    return {"measured": _named(test), "fitted": None if train is None else _named(train)}


def _named(data: TextDataset) -> dict[str, Any]:
    return {
        "dataset": data.name,
        "split": data.split,
        "rows": len(data),
        "hash": data_hash(data),
    }


def _texts(data: TextDataset) -> list[str]:
    return list(data.texts) if data.task == "classification" else list(map(" ".join, data.tokens))


def _accuracy(before: Reading, after: Reading, seed: int) -> dict[str, Any]:
    """On the measured rows, with the interval of the change over the same resampled rows."""
    right = [
        (reading.state.predicted == reading.labels).double().numpy() for reading in (before, after)
    ]
    change = mean_estimate(right[1] - right[0], seed)
    return {"before": right[0].mean(), "after": right[1].mean(), "change": asdict(change)}


def _leak(
    model: LexicalSAE,
    before: Reading,
    after: Reading,
    test: TextDataset,
    train: TextDataset | None,
    seed: int,
    advance: Advance,
) -> dict[str, Any]:
    """Whether a text holds one of the cut words, told from its open words before and after."""
    concept = "the text holds one of the words"
    if train is None:
        return {"concept": concept, "why": "there is no training split to fit a probe on"}
    if model.config.task == "tagging":
        return {"concept": concept, "why": "probes are for classifiers; this model tags words"}
    assert model.dictionary is not None
    words = [model.dictionary.words[v] for v in suppressed_coordinates(model)]
    held = [
        groups_of_terms(_texts(data), {"cut": words}, exact=True)["cut"]
        | np.array([bool(without_unread(t, model.config.unread).gone) for t in _texts(data)])
        for data in (train, test)
    ]
    shown: dict[str, Any] = {"concept": concept, "rows_with_it": int(held[1].sum())}
    for name, other, reading in (
        ("before", _restored(model), before),
        ("after", model, after),
    ):
        fitted = sparse_rows(read_split(other, train, advance).state.open_words)
        measured = sparse_rows(reading.state.open_words)
        leaks = measure_leak("open words", fitted, held[0], measured, held[1], seed=seed)
        shown[name] = {leak.probe: asdict(leak.auc) for leak in leaks}
    return shown
