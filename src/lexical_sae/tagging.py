"""Tags and entities of sentences: in memory, for whoever needs no explanation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lexical_sae.text.entities import Entity, entities_of
from lexical_sae.text.sentences import Sentence, read_sentences_given

if TYPE_CHECKING:
    from lexical_sae.model.lexical_sae import LexicalSAE


@dataclass(frozen=True)
class TaggedSentence:
    """A sentence, its tags, which are legal IOB2 together, and its entities."""

    sentence: Sentence
    tags: tuple[str, ...]
    probabilities: tuple[float, ...]  # of each tag
    entities: tuple[Entity, ...]
    open_words: int  # over all words


def predict_tags(
    model: LexicalSAE, sentences: Sequence[str | Sequence[str]], batch_size: int = 32
) -> list[TaggedSentence]:
    """Tags and entities of each sentence: a text, or a list of words."""
    from lexical_sae.model.tagging import check_tagger, read_sentences

    check_tagger(model)
    read = read_sentences_given(sentences)
    names = model.config.labels
    found: dict[int, TaggedSentence] = {}
    for reading in read_sentences(model, [one.words for one in read], batch_size):
        opened = [0] * len(reading.sentences)
        for part in reading.parts:
            for (s, _), count in zip(
                part.places(), part.state.open_words.counts().tolist(), strict=True
            ):
                opened[s] += count
        for s, (place, chosen) in enumerate(
            zip(reading.sentences, reading.logits.tags(), strict=True)
        ):
            shares = reading.logits.logits[s].softmax(-1)
            tags = tuple(names[tag] for tag in chosen)
            probabilities = tuple(float(shares[w, tag]) for w, tag in enumerate(chosen))
            entities = entities_of(read[place], tags, probabilities)
            found[place] = TaggedSentence(read[place], tags, probabilities, entities, opened[s])
    return [found[i] for i in range(len(read))]
