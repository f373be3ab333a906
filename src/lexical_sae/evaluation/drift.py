"""Step 12: is a word's coordinate still about that word?

For each text, by contribution: how much comes from words that are in the text themselves, and how
much from words that the untrained backbone opens for the same text. Measured for the trained model
and, for the first, for the untrained one too.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from lexical_sae.attribution.contributions import compute_attribution_tensor, sum_by_row
from lexical_sae.evaluation.bootstrap import mean_estimate
from lexical_sae.evaluation.reading import NotPossible, Reading
from lexical_sae.evaluation.subject import Subject
from lexical_sae.evaluation.tag_reading import TagReading
from lexical_sae.model.fingerprint import dictionary_hash
from lexical_sae.model.lexical_layer import by_word
from lexical_sae.model.lexical_sae import LexicalSAE
from lexical_sae.model.open_words import OpenWords
from lexical_sae.model.state import CircuitState
from lexical_sae.report.finding import Cell, Finding, FindingTable
from lexical_sae.text.alignment import sentence_windows
from lexical_sae.text.dataset import TextDataset
from lexical_sae.training.config import RunConfig
from lexical_sae.training.fit import build_model, plain_texts
from lexical_sae.training.run import load_data


@dataclass(frozen=True, eq=False)
class Overlap:
    """[N] shares of Σ|A|, one per text that has any; NaN where nothing is open."""

    own_words: Tensor
    untrained_words: Tensor | None


def share_inside(size: Tensor, inside: Tensor, open_words: OpenWords) -> Tensor:
    """[rows]: Σ size over the pairs inside, of Σ size over all; NaN for rows without any."""
    whole = sum_by_row(size.double(), open_words.row, open_words.rows)
    part = sum_by_row(size.double() * inside, open_words.row, open_words.rows)
    return part / whole


def pairs_in(open_words: OpenWords, other: OpenWords) -> Tensor:
    """[P] bool: whether the same word is open in the same row of `other`."""
    width = open_words.dictionary_size
    return torch.isin(open_words.row * width + open_words.word, other.row * width + other.word)


def pairs_of_own_words(open_words: OpenWords, token_ids: Tensor, texts: list[set[int]]) -> Tensor:
    """[P] bool: whether the word's token is among those of its text; `token_ids` [V]."""
    tokens = token_ids[open_words.word].tolist()
    rows = open_words.row.tolist()
    return torch.tensor([t in texts[row] for t, row in zip(tokens, rows, strict=True)])


def overlap(
    reading: Reading, model: LexicalSAE, texts: list[set[int]], untrained: OpenWords | None
) -> Overlap:
    state: CircuitState = reading.state
    with torch.no_grad():
        size = compute_attribution_tensor(state, row_classes=state.predicted).abs()
    token_ids = model.lexical.token_ids
    own = share_inside(
        size, pairs_of_own_words(state.open_words, token_ids, texts), state.open_words
    )
    if untrained is None:
        return Overlap(own, None)
    inside = pairs_in(by_word(model.lexical, state.open_words), by_word(model.lexical, untrained))
    return Overlap(own, share_inside(size, inside, state.open_words))


def untrained_model(
    config: RunConfig, trained: LexicalSAE, train: TextDataset | None = None
) -> LexicalSAE:
    """The model that a run started from, with the same dictionary; `train` are the rows that it
    was trained on, if they are not those that its config names."""
    train = load_data(config).train if train is None else train
    fresh: LexicalSAE = build_model(config, train.label_names, plain_texts(train), train.task)
    if dictionary_hash(fresh) != dictionary_hash(trained):
        raise NotPossible(
            "The data or backbone of the run have changed, so that the untrained model has other "
            "words and cannot be compared."
        )
    fresh.config.max_tokens = trained.config.max_tokens
    return fresh


def measure_drift(subject: Subject) -> Finding:
    """Overlap with the text's own words, and with what the untrained model opens for it."""
    reading, model = subject.reading, subject.model
    texts = _own_tokens(subject)
    fresh = None if subject.untrained is None else subject.untrained()
    before: Reading | None = None
    if fresh is not None:
        before = subject.read(fresh, subject.test)
    found = overlap(
        reading,
        model,
        texts,
        None if before is None else before.state.open_words,
    )
    metrics = {"own_word_share": mean_estimate(_known(found.own_words), subject.seed)}
    rows: list[tuple[Cell, ...]] = [
        ("the trained model", *_shares(found.own_words), *_shares(found.untrained_words))
    ]
    notes: tuple[str, ...] = ()
    if before is None or fresh is None:
        notes = ("Not compared with the untrained model: the run that made this one is not known.",)
    else:
        assert found.untrained_words is not None
        metrics["untrained_share"] = mean_estimate(_known(found.untrained_words), subject.seed)
        own = share_inside(
            before.state.open_words.value,
            pairs_of_own_words(before.state.open_words, fresh.lexical.token_ids, texts),
            before.state.open_words,
        )
        rows.append(("the untrained model, by activation", *_shares(own), None))
    columns = ("", "from words of the text, %", "from words that the untrained model opens, %")
    return Finding(
        metrics=metrics,
        tables=(FindingTable("Where contributions come from", columns, tuple(rows)),),
        notes=notes,
    )


def _own_tokens(subject: Subject) -> list[set[int]]:
    """[N] the tokens of each decision's text."""
    data, reading = subject.test, subject.reading
    if not isinstance(reading, TagReading):
        return [set(subject.model.encode([text]).input_ids[0].tolist()) for text in data.texts]
    # in windows, as they are read: a long sentence has more tokens than one pass takes
    config, each = subject.model.config, [set[int]() for _ in data.tokens]
    assert subject.model.tokenizer is not None
    for window in sentence_windows(
        subject.model.tokenizer, data.tokens, config.max_tokens, config.special_token_ids
    ):
        each[window.sentence].update(window.input_ids)
    return [each[place] for place in reading.sentence.tolist()]


def _known(values: Tensor) -> list[float]:
    return values[~values.isnan()].tolist()


def _shares(values: Tensor | None) -> tuple[float | None]:
    known = [] if values is None else _known(values)
    return (100 * sum(known) / len(known) if known else None,)
