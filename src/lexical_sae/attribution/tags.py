"""explain_tags: the exact sum behind the tag of every word, and behind every entity."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import torch

from lexical_sae.attribution.contributions import compute_attribution_tensor
from lexical_sae.attribution.tag_explanation import (
    EntityExplanation,
    TagExplanation,
    TagWord,
    TokenExplanation,
)
from lexical_sae.model.fingerprint import dictionary_hash, model_hash
from lexical_sae.model.sense_notes import SenseName, sense_names
from lexical_sae.model.tagging import BATCH, Reading, ReadWords, check_tagger, read_sentences
from lexical_sae.text.entities import entities_of
from lexical_sae.text.sentences import Sentence, read_sentences_given

if TYPE_CHECKING:
    from lexical_sae.model.lexical_sae import LexicalSAE

Place = tuple[int, int]  # (sentence of a reading, word)


def explain_tags(
    model: LexicalSAE, sentences: Sequence[str | Sequence[str]], *, batch_size: int = BATCH
) -> list[TagExplanation]:
    """For each sentence (a text, or a list of words) the tags that are legal together and score
    best, each with the sum behind its logit."""
    check_tagger(model)
    read = read_sentences_given(sentences)
    found: dict[int, TagExplanation] = {}
    identity = model_hash(model), dictionary_hash(model)
    for reading in read_sentences(model, [one.words for one in read], batch_size):
        group = [read[i] for i in reading.sentences]
        tokens = _tokens(model, reading, group)
        for place, sentence, explained in zip(reading.sentences, group, tokens, strict=True):
            found[place] = TagExplanation(
                sentence.text, explained, _entities(sentence, explained), *identity
            )
    return [found[i] for i in range(len(read))]


def _tokens(
    model: LexicalSAE, reading: Reading, group: Sequence[Sentence]
) -> list[tuple[TokenExplanation, ...]]:
    tags, names = reading.logits.tags(), model.config.labels
    shares = [logits.softmax(-1) for logits in reading.logits.logits]
    sums: dict[Place, tuple[float, float, tuple[TagWord, ...]]] = {}
    for part in reading.parts:
        sums |= _sums(model, part, tags)
    explained = []
    for s, sentence in enumerate(group):
        row = []
        for w, (word, (start, end)) in enumerate(zip(sentence.words, sentence.spans, strict=True)):
            logit, bias, vocabulary = sums.get((s, w), (0.0, 0.0, ()))
            row.append(
                TokenExplanation(
                    logit=logit,
                    bias=bias,
                    vocabulary=vocabulary,
                    text=word,
                    start=start,
                    end=end,
                    tag=names[tags[s][w]],
                    probability=float(shares[s][w, tags[s][w]]),
                    read=(s, w) in sums,
                )
            )
        explained.append(tuple(row))
    return explained


@torch.no_grad()
def _sums(
    model: LexicalSAE, part: ReadWords, tags: Sequence[Sequence[int]]
) -> Iterator[tuple[Place, tuple[float, float, tuple[TagWord, ...]]]]:
    """(place, (logit, bias, vocabulary)) of each word that was read, for its emitted tag."""
    places = part.places()
    if not places:
        return
    state, open_words = part.state, part.state.open_words
    emitted = torch.tensor([tags[s][w] for s, w in places], device=state.logits.device)  # [R]
    contributions = compute_attribution_tensor(state, row_classes=emitted).tolist()
    logit = state.logits.gather(1, emitted[:, None])[:, 0].tolist()
    bias = state.b_eff.gather(1, emitted[:, None])[:, 0].tolist()
    words, values = open_words.word.tolist(), open_words.value.tolist()
    offsets = open_words.offsets.tolist()
    assert model.dictionary is not None
    names, senses = model.dictionary.words, sense_names(model)
    for row, place in enumerate(places):
        vocabulary = [
            TagWord(*(names[words[p]], contributions[p], words[p], values[p]), senses.get(words[p]))
            for p in range(offsets[row], offsets[row + 1])
            if contributions[p] != 0.0
        ]
        vocabulary.sort(key=_size)
        yield place, (logit[row], bias[row], tuple(vocabulary))


def _entities(
    sentence: Sentence, tokens: Sequence[TokenExplanation]
) -> tuple[EntityExplanation, ...]:
    tags = [token.tag for token in tokens]
    found = []
    for entity in entities_of(sentence, tags, [token.probability for token in tokens]):
        inside = tokens[slice(*entity.words)]
        parts: dict[tuple[int, str, SenseName | None], list[float]] = {}
        for token in inside:
            for word in token.vocabulary:
                key = (word.coordinate, word.word, word.sense)
                parts.setdefault(key, []).append(word.contribution)
        sums = {word: math.fsum(values) for word, values in parts.items()}
        vocabulary = [
            TagWord(name, total, coordinate, sense=sense)
            for (coordinate, name, sense), total in sums.items()
            if total != 0.0
        ]
        found.append(
            EntityExplanation(
                logit=math.fsum(token.logit for token in inside),
                bias=math.fsum(token.bias for token in inside),
                vocabulary=tuple(sorted(vocabulary, key=_size)),
                entity=entity,
            )
        )
    return tuple(found)


def _size(word: TagWord) -> float:
    return -abs(word.contribution)
