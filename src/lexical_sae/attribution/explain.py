"""From texts to explanations, in batches: one forward pass and a gather over the open words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from lexical_sae.attribution.contributions import compute_attribution_tensor
from lexical_sae.attribution.explanation import Explanation, Place, VocabularyWord
from lexical_sae.attribution.integrated_gradients import baseline_logits, integrated_gradients
from lexical_sae.attribution.requests import check_request, class_of
from lexical_sae.attribution.words import (
    SpanScore,
    input_words,
    joined_spans,
    position_contributions,
    score_words,
)
from lexical_sae.model.fingerprint import dictionary_hash, model_hash
from lexical_sae.model.mode import in_mode
from lexical_sae.model.precision import check_finite
from lexical_sae.model.sense_notes import SenseName, sense_names
from lexical_sae.model.state import CircuitState
from lexical_sae.text.tokenise import Encoded

if TYPE_CHECKING:
    from lexical_sae.model.lexical_sae import LexicalSAE

METHODS = ("contributions", "integrated_gradients")
BATCH = 32


def explain(
    model: LexicalSAE,
    text: str,
    label: str | None = None,
    against: str | None = None,
    *,
    method: str = "contributions",
) -> Explanation:
    """Why `text` gets `label` (the predicted one if None), or `label` rather than `against`.

    If `against` is itself the predicted label, the runner-up is explained against it.
    """
    if not isinstance(text, str):
        raise ValueError(f"text is of type {type(text).__name__}; expected one string.")
    return explain_many(model, [text], label, against, method=method)[0]


def explain_many(
    model: LexicalSAE,
    texts: Sequence[str],
    label: str | Sequence[str | None] | None = None,
    against: str | None = None,
    *,
    method: str = "contributions",
    batch_size: int = BATCH,
) -> list[Explanation]:
    """`explain` for every text, in their order, for little more than the cost of predicting.

    `label` is for all texts, or one for each.
    """
    found: list[Explanation | None] = [None] * len(texts)
    for batch in explained_batches(
        model, texts, label, against, method=method, batch_size=batch_size
    ):
        for index, explanation in zip(batch.index, batch.explanations, strict=True):
            found[index] = explanation
    return [explanation for explanation in found if explanation is not None]


@dataclass(frozen=True, eq=False)
class ExplainedBatch:
    """Some of the texts, explained, and the state of the model behind it, for proofs about it."""

    index: tuple[int, ...]  # places of these texts among those given
    explanations: tuple[Explanation, ...]
    state: CircuitState


@torch.no_grad()
def explained_batches(
    model: LexicalSAE,
    texts: Sequence[str],
    label: str | Sequence[str | None] | None = None,
    against: str | None = None,
    *,
    method: str = "contributions",
    batch_size: int = BATCH,
) -> Iterator[ExplainedBatch]:
    """Batches of texts of like length, the longest first."""
    check_request(model, texts)
    several = [label] * len(texts) if label is None or isinstance(label, str) else list(label)
    if len(several) != len(texts):
        raise ValueError(
            f"There are {len(several)} labels for {len(texts)} texts; expected one each."
        )
    wanted = [class_of(model, name) for name in several]
    rival = class_of(model, against)
    if rival is not None and rival in wanted:
        raise ValueError(f"label and against are both {against!r}; expected two different labels.")
    if method not in METHODS:
        raise ValueError(f"method is {method!r}; expected one of {', '.join(METHODS)}.")
    if batch_size < 1:
        raise ValueError(f"batch_size is {batch_size}; expected at least 1.")
    identity = model_hash(model), dictionary_hash(model)
    order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
    for start in range(0, len(order), batch_size):
        part = order[start : start + batch_size]
        with in_mode(model, training=False):
            encoded = model.encode([texts[i] for i in part])
            state = model.classify(**encoded.model_inputs())
        labels = [wanted[i] for i in part]
        made = _explanations(model, encoded, state, labels, rival, method, identity)
        yield ExplainedBatch(tuple(part), tuple(made), state)


def _explanations(
    model: LexicalSAE,
    encoded: Encoded,
    state: CircuitState,
    wanted: Sequence[int | None],
    rival: int | None,
    method: str,
    identity: tuple[str, str],
) -> Iterator[Explanation]:
    names = model.config.labels
    predicted = state.predicted  # [B]
    asked = predicted.new_tensor([-1 if index is None else index for index in wanted])
    label = torch.where(asked < 0, predicted, asked)  # [B]
    if rival is not None:
        # a text that is given the very label: then its runner-up is explained against it
        others = state.logits.clone()
        others[:, rival] = -torch.inf
        label = torch.where(label == rival, others.argmax(-1), label)
    score = _score(state, label, method)
    bias, logit = _bias(state, label, method), _at(state.logits, label)
    if rival is not None:
        against = torch.full_like(predicted, rival)
        score = score - _score(state, against, method)
        bias = bias - _bias(state, against, method)
        logit = logit - _at(state.logits, against)
    check_finite(state.logits)
    probabilities = state.logits.double().softmax(-1).tolist()
    offsets = state.open_words.offsets.tolist()
    senses = sense_names(model)
    numbers = _Numbers.of(state, score, encoded.input_ids.shape[1])
    for row, (b, z) in enumerate(zip(bias.tolist(), logit.tolist(), strict=True)):
        pairs = range(offsets[row], offsets[row + 1])
        vocabulary, words = _views(model, encoded, row, numbers, pairs, senses)
        yield Explanation(
            text=encoded.texts[row],
            label=names[int(label[row])],
            against=None if rival is None else names[rival],
            predicted=names[int(predicted[row])],
            probabilities=dict(zip(names, probabilities[row], strict=True)),
            logit=z,
            bias=b,
            vocabulary=vocabulary,
            words=tuple(word for word in words if word.score),
            spans=joined_spans(encoded.texts[row], words),
            truncated=encoded.truncated[row],
            method=method,
            model_hash=identity[0],
            dictionary_hash=identity[1],
            unread=tuple(Place(encoded.texts[row][a:z], a, z) for a, z in encoded.unread[row]),
        )


@dataclass(frozen=True, eq=False)
class _Numbers:
    """The open words of a batch as Python numbers, moved over in one go."""

    word: list[int]
    value: list[float]
    score: list[float]
    position: list[int]
    by_position: list[list[float]]  # [B][L]

    @classmethod
    def of(cls, state: CircuitState, score: Tensor, length: int) -> _Numbers:
        open_words = state.open_words
        return cls(
            open_words.word.tolist(),
            open_words.value.tolist(),
            score.tolist(),
            open_words.position.tolist(),
            position_contributions(state, score, length).tolist(),
        )


def _views(
    model: LexicalSAE,
    encoded: Encoded,
    row: int,
    numbers: _Numbers,
    pairs: range,
    senses: Mapping[int, SenseName],
) -> tuple[tuple[VocabularyWord, ...], list[SpanScore]]:
    """The vocabulary view, largest first, and the word view, in the order of the text."""
    assert model.dictionary is not None
    names = model.dictionary.words
    here = input_words(encoded, row)
    at = {position: i for i, word in enumerate(here) for position in word.positions}
    places: dict[int, Place] = {}
    vocabulary = []
    for p in pairs:
        score = numbers.score[p]
        if score == 0.0:
            continue
        coordinate, i = numbers.word[p], at[numbers.position[p]]
        if i not in places:
            places[i] = Place(here[i].text, here[i].start, here[i].end)
        vocabulary.append(
            VocabularyWord(
                *(names[coordinate], score, numbers.value[p], places[i], coordinate),
                senses.get(coordinate),
            )
        )
    vocabulary.sort(key=lambda entry: -abs(entry.contribution))
    return tuple(vocabulary), score_words(here, numbers.by_position[row])


def _score(state: CircuitState, label: Tensor, method: str) -> Tensor:
    """[P]: what each open word gives its row's label."""
    if method == "contributions":
        return compute_attribution_tensor(state, row_classes=label)
    wanted = sorted(set(label.tolist()))
    scores = integrated_gradients(state, wanted)  # [P, K]
    column = torch.searchsorted(torch.tensor(wanted), label.cpu()).to(scores.device)
    return scores.gather(1, column[state.open_words.row][:, None])[:, 0]


def _bias(state: CircuitState, label: Tensor, method: str) -> Tensor:
    """[B]: what is not the words': b_eff, or the logit of an empty text for IG."""
    if method == "contributions":
        return _at(state.b_eff, label)
    return baseline_logits(state)[label]


def _at(values: Tensor, label: Tensor) -> Tensor:
    """values [B, C], label [B] → [B]."""
    return values.gather(1, label[:, None])[:, 0]
