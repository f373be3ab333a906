"""A tagger's pass over labelled sentences: every word is a decision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from lexical_sae.evaluation.reading import BATCH, NotPossible, Reading, joined, read_texts
from lexical_sae.model.lexical_sae import LexicalSAE
from lexical_sae.model.tagging import read_sentences
from lexical_sae.text.dataset import TextDataset

AROUND = 4  # words shown on either side of the one that is meant


@dataclass(frozen=True, eq=False)
class TagReading(Reading):
    """Words that have a token, in the order read; `tags` are those of all words, legal together."""

    sentence: Tensor  # [N] place of each decision's sentence among those given
    tags: tuple[tuple[int, ...], ...]  # of every sentence given


def read_tagged(
    model: LexicalSAE,
    sentences: Sequence[Sequence[str]],
    tags: Sequence[Sequence[int]],
    *,
    batch_size: int = BATCH,
    advance: Callable[[int], None] = lambda rows: None,
) -> TagReading:
    """One pass, sentences of like length together."""
    states, places = [], []
    decoded: dict[int, tuple[int, ...]] = {}
    for group in read_sentences(model, sentences, batch_size):
        for part in group.parts:
            states.append(part.state)
            places += [(group.sentences[s], word) for s, word in part.places()]
        found = zip(group.sentences, group.logits.tags(), strict=True)
        decoded |= {place: tuple(row) for place, row in found}
        advance(len(group.sentences))
    if not states:
        raise NotPossible("No word of these sentences has a token, so there is nothing to measure.")
    return TagReading(
        state=joined(states),
        labels=torch.tensor([tags[s][w] for s, w in places]),
        names=tuple(shown_word(sentences[s], w) for s, w in places),
        sentence=torch.tensor([s for s, _ in places]),
        tags=tuple(decoded[i] for i in range(len(sentences))),
    )


def read_split(
    model: LexicalSAE, data: TextDataset, advance: Callable[[int], None] = lambda rows: None
) -> Reading:
    """A pass over labelled rows of the model's own task."""
    if model.config.task == "tagging":
        return read_tagged(model, data.tokens, data.tags, advance=advance)
    return read_texts(model, data.texts, data.labels, advance=advance)


def shown_word(sentence: Sequence[str], word: int) -> str:
    """A word with some of its neighbours, for people."""
    before, after = sentence[max(0, word - AROUND) : word], sentence[word + 1 : word + 1 + AROUND]
    return " ".join([*before, f"«{sentence[word]}»", *after])
