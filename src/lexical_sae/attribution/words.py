"""Views over the input: contributions by position, word and span, each adding up to the logit."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from lexical_sae.attribution.contributions import compute_attribution_tensor
from lexical_sae.attribution.requests import check_request, class_of
from lexical_sae.model.mode import in_mode
from lexical_sae.model.state import CircuitState
from lexical_sae.text.tokenise import Encoded

if TYPE_CHECKING:
    from lexical_sae.model.lexical_sae import LexicalSAE

METHODS = ("sum", "max_abs")


@dataclass(frozen=True)
class SpanScore:
    """A stretch of the input text and what it contributes."""

    text: str
    start: int
    end: int
    score: float

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class InputWord:
    """A word of the input text and the token positions that make it up."""

    text: str
    start: int
    end: int
    positions: tuple[int, ...]


def input_words(encoded: Encoded, row: int) -> list[InputWord]:
    """The words of a text in its order, as the tokenizer splits it; every token with characters
    belongs to exactly one."""
    groups: dict[object, list[int]] = {}
    # a word that was not read may have stood within what is one to the tokenizer: "(lovely)"
    cuts = [start for start, _ in encoded.unread[row]]
    for position, (start, end) in enumerate(encoded.offsets[row]):
        word = encoded.word_ids[row][position]
        if word is not None:
            groups.setdefault((word, bisect_right(cuts, start)), []).append(position)
        elif start < end:  # a token with characters but no word, such as an added token
            groups.setdefault(("token", position), []).append(position)
    text = encoded.texts[row]
    found = []
    for positions in groups.values():
        start = min(encoded.offsets[row][p][0] for p in positions)
        end = max(encoded.offsets[row][p][1] for p in positions)
        start, end = _without_spaces(text, start, end)
        found.append(InputWord(text[start:end], start, end, tuple(positions)))
    return found


def position_contributions(state: CircuitState, attribution: Tensor, length: int) -> Tensor:
    """[B, length]: what each token position contributes; attribution [P] is for one class.

    A word's contribution goes to the positions that opened it, by their share of its value, so
    the sum over positions is the sum over open words.
    """
    open_words = state.open_words
    if len(open_words.shape) != 1:
        raise ValueError(
            "position_contributions is for documents; in a tagged batch each row is a position."
        )
    if attribution.shape != open_words.value.shape:
        raise ValueError(
            f"attribution has shape {tuple(attribution.shape)}; expected one number for each of "
            f"the {len(open_words)} open words."
        )
    sources = open_words.sources
    value = open_words.value[sources.pair]
    share = sources.value / value.where(value > 0, value.new_ones(()))
    scores = attribution.new_zeros(open_words.rows * length)
    flat = open_words.row[sources.pair] * length + sources.position
    return scores.index_add(0, flat, attribution[sources.pair] * share).view(-1, length)


def aggregate_subword_attributions(
    encoded: Encoded, row: int, scores: Tensor, method: str = "sum"
) -> list[SpanScore]:
    """Word scores from the scores [L] of a text's tokens, in the order of the text.

    `sum` preserves the total; `max_abs` takes each word's largest token, with its sign, and
    shows peaks that a sum would cancel, so it does not add up.
    """
    _check_method(method)
    return score_words(input_words(encoded, row), scores.tolist(), method)


def score_words(
    words: Sequence[InputWord], scores: Sequence[float], method: str = "sum"
) -> list[SpanScore]:
    """Each word's score from those of its tokens; scores [L]."""
    return [
        SpanScore(
            word.text, word.start, word.end, _together([scores[p] for p in word.positions], method)
        )
        for word in words
    ]


def span_contributions(
    encoded: Encoded,
    row: int,
    scores: Tensor,
    spans: Sequence[tuple[int, int]],
    method: str = "sum",
) -> tuple[list[SpanScore], float]:
    """Scores of the caller's character spans, and the rest; with `sum` they add up.

    A token belongs to the first span that it overlaps, so that nothing is counted twice.
    """
    _check_method(method)
    text = encoded.texts[row]
    for start, end in spans:
        if not 0 <= start < end <= len(text):
            raise ValueError(
                f"The span ({start}, {end}) is not inside the text of {len(text)} characters."
            )
    parts: list[list[float]] = [[] for _ in spans]
    rest: list[float] = []
    for offsets, score in zip(encoded.offsets[row], scores.tolist(), strict=True):
        left, right = _without_spaces(text, *offsets)
        overlapped = (
            part
            for part, (start, end) in zip(parts, spans, strict=True)
            if left < end and right > start and left < right
        )
        next(overlapped, rest).append(score)
    found = [
        SpanScore(text[start:end], start, end, _together(part, method))
        for (start, end), part in zip(spans, parts, strict=True)
    ]
    return found, _together(rest, method)


def _check_method(method: str) -> None:
    if method not in METHODS:
        raise ValueError(f"method is {method!r}; expected one of {', '.join(METHODS)}.")


def _together(parts: Sequence[float], method: str) -> float:
    return sum(parts) if method == "sum" else max(parts, key=abs, default=0.0)


@dataclass(frozen=True)
class SpanExplanation:
    """Σ spans + rest + bias = logit, unless the method is max_abs."""

    label: str
    spans: tuple[SpanScore, ...]
    rest: float
    bias: float
    logit: float

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@torch.no_grad()
def explain_model_spans(
    model: LexicalSAE,
    text: str,
    label: str | None = None,
    *,
    spans: Sequence[tuple[int, int]] | None = None,
    method: str = "sum",
) -> SpanExplanation:
    """What the words of a text contribute to its label (the predicted one if None), or what the
    caller's character spans do: entities, sentences."""
    check_request(model, [text])
    names, wanted = list(model.config.labels), class_of(model, label)
    with in_mode(model, training=False):
        encoded = model.encode([text])
        state = model.classify(**encoded.model_inputs())
    index = int(state.predicted[0]) if wanted is None else wanted
    attribution = compute_attribution_tensor(state, index)
    scores = position_contributions(state, attribution, encoded.input_ids.shape[1])[0]
    rest = 0.0
    if spans is None:
        found = aggregate_subword_attributions(encoded, 0, scores, method)
    else:
        found, rest = span_contributions(encoded, 0, scores, spans, method)
    bias, logit = float(state.b_eff[0, index]), float(state.logits[0, index])
    return SpanExplanation(names[index], tuple(found), rest, bias, logit)


def joined_spans(text: str, words: Sequence[SpanScore]) -> tuple[SpanScore, ...]:
    """Neighbouring words that speak for the same side, joined; they add up to what the words do.

    Words that contribute nothing break no span and begin or end none.
    """
    spans: list[SpanScore] = []
    for word in words:
        if word.score == 0:
            continue
        last = spans[-1] if spans else None
        if last is not None and (last.score > 0) == (word.score > 0):
            start, end = min(last.start, word.start), max(last.end, word.end)
            spans[-1] = SpanScore(text[start:end], start, end, last.score + word.score)
        else:
            spans.append(word)
    return tuple(spans)


def _without_spaces(text: str, start: int, end: int) -> tuple[int, int]:
    """Byte-level tokenizers may count the space before a word as part of it."""
    piece = text[start:end]
    stripped = piece.strip()
    if not stripped:
        return start, end
    left = start + len(piece) - len(piece.lstrip())
    return left, left + len(stripped)
