"""Word in context: is a word meant in the same sense in two sentences?

A model with senses says "same" if it routes the word alike in both. Without senses it can only say
"same", always. Beside that stand two yardsticks with a threshold that is fitted on the training
pairs: the cosine of the hidden states, and that of the open words at the two places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from lexical_sae.evaluation.bootstrap import Difference, mean_estimate, runs_difference
from lexical_sae.model.gate import nonnegative_threshold
from lexical_sae.model.lexical_sae import LexicalSAE
from lexical_sae.model.mode import in_mode
from lexical_sae.report.finding import Estimate
from lexical_sae.text.dataset import TextDataset

BATCH = 32
COLUMNS = ("word", "index1", "index2", "sentence2")
ROUTES = "routes of the senses"
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class WordPair:
    """Two sentences, each with the place (counted in words) where the word stands."""

    word: str
    sentences: tuple[str, str]
    places: tuple[int, int]
    same: bool


def word_pairs(data: TextDataset) -> list[WordPair]:
    """The pairs of a dataset with the columns of WiC, read with its first sentence as text."""
    missing = [name for name in COLUMNS if name not in data.extra]
    if missing or "T" not in data.label_names:
        raise ValueError(
            f"{data.name} has no {', '.join(missing) or 'label_name with T and F'}; expected pairs "
            "as in WiC: word, sentence1, sentence2, index1, index2, label_name."
        )
    yes = data.label_names.index("T")
    rows = zip(data.texts, data.labels, *(data.extra[name] for name in COLUMNS), strict=True)
    return [
        WordPair(str(word), (first, str(second)), (int(one), int(two)), label == yes)
        for first, label, word, one, two, second in rows
    ]


@torch.no_grad()
def states_of_pairs(model: LexicalSAE, pairs: Sequence[WordPair]) -> tuple[Tensor, Tensor]:
    """[n, H] each: the hidden state of the word in the first and in the second sentence."""
    sentences = [pair.sentences[i] for i in (0, 1) for pair in pairs]
    places = [pair.places[i] for i in (0, 1) for pair in pairs]
    found = model.lexical.weight.new_zeros(len(sentences), model.lexical.weight.shape[1])
    order = sorted(range(len(sentences)), key=lambda i: len(sentences[i]))
    with in_mode(model, training=False):
        for start in range(0, len(order), BATCH):
            part = order[start : start + BATCH]
            encoded = model.encode([sentences[i] for i in part])
            h = model.hidden_states(**encoded.model_inputs())
            for row, i in enumerate(part):
                left, right = word_span(sentences[i], places[i])
                spans = enumerate(encoded.offsets[row])
                tokens = [t for t, (a, z) in spans if a < right and z > left and a < z]
                if tokens:  # else it was cut off: zeros, like nothing else
                    found[i] = h[row, tokens].mean(0)
    return found[: len(pairs)], found[len(pairs) :]


def word_span(sentence: str, place: int) -> tuple[int, int]:
    """The characters of the word at a place, counted in words between spaces."""
    start = 0
    for number, word in enumerate(sentence.split()):
        start = sentence.index(word, start)
        if number == place:
            return start, start + len(word)
        start += len(word)
    raise ValueError(f"{sentence!r} has no word number {place}; expected a place in the sentence.")


@torch.no_grad()
def same_route(model: LexicalSAE, pairs: Sequence[WordPair], one: Tensor, two: Tensor) -> Tensor:
    """[n]: 1 if both places go to the same sense, 0 if not, −1 if the word has no senses."""
    senses, dictionary = model.lexical.senses, model.dictionary
    said = torch.full((len(pairs),), -1)
    if senses is None or dictionary is None:
        return said
    expanded = {v: k for k, v in enumerate(senses.words.tolist())}
    number = [next(iter(dictionary.coordinates(pair.word)), -1) for pair in pairs]
    known = [(i, expanded[v]) for i, v in enumerate(number) if v in expanded]
    if not known:
        return said
    index, which = (torch.tensor(column) for column in zip(*known, strict=True))
    routes = [senses.scores(h, index, which).argmax(1) for h in (one, two)]
    said[index] = (routes[0] == routes[1]).long()
    return said


@torch.no_grad()
def open_word_cosine(model: LexicalSAE, one: Tensor, two: Tensor) -> Tensor:
    """[n]: cosine of the words (senses aside) that are open at the two places."""
    lexical, found = model.lexical, []
    theta = nonnegative_threshold(lexical.threshold)[: lexical.words]
    for start in range(0, len(one), BATCH):
        s = [
            torch.relu(h[start : start + BATCH] @ lexical.weight.T + lexical.bias - theta)
            for h in (one, two)
        ]
        found.append(F.cosine_similarity(s[0], s[1]))
    return torch.cat(found)


def best_threshold(score: Tensor, same: Bools) -> float:
    """The threshold above which "same" is right most often."""
    order = torch.argsort(score)
    values, labels = score[order].double().numpy(), same[order.numpy()]
    # cut before place i: those below are "different", the rest "same"
    right = np.concatenate([[0], np.cumsum(~labels)]) + np.concatenate(
        [np.cumsum(labels[::-1])[::-1], [0]]
    )
    cut = int(right.argmax())
    if cut == 0:
        return float(values[0]) - 1.0
    if cut == len(values):
        return float(values[-1]) + 1.0
    return float((values[cut - 1] + values[cut]) / 2)


@dataclass(frozen=True)
class WordInContext:
    """Accuracy of each way to decide, over all pairs and over those whose word has senses; then
    how far the routes are from each of the other ways, pair by pair."""

    pairs: int
    covered: int
    words: int  # with senses, among those of the pairs
    said_same: float  # share of the covered pairs
    all_pairs: dict[str, Estimate]
    covered_pairs: dict[str, Estimate]
    all_against: dict[str, Difference]
    covered_against: dict[str, Difference]  # empty if no word has senses


def measure_word_in_context(
    model: LexicalSAE, train: Sequence[WordPair], test: Sequence[WordPair], seed: int = 0
) -> WordInContext:
    """`train` sets the thresholds of the two yardsticks; senses are judged as they are."""
    fitted, one_two = states_of_pairs(model, train), states_of_pairs(model, test)
    same = np.array([pair.same for pair in test])
    gold = np.array([pair.same for pair in train])
    route = same_route(model, test, *one_two).numpy()
    right: dict[str, Bools] = {
        ROUTES: (route != 0) == same,
        "no senses: always the same": np.ones_like(same) == same,
    }
    for name, score in (
        ("cosine of open words", lambda a, b: open_word_cosine(model, a, b)),
        ("cosine of hidden states", F.cosine_similarity),
    ):
        threshold = best_threshold(score(*fitted), gold)
        right[name] = (score(*one_two).double().numpy() > threshold) == same
    covered = route >= 0
    words = {pair.word for pair, known in zip(test, covered, strict=True) if known}
    return WordInContext(
        len(test),
        int(covered.sum()),
        len(words),
        float(route[covered].mean()) if covered.any() else float("nan"),
        {name: mean_estimate(found.astype(float), seed) for name, found in right.items()},
        {name: mean_estimate(found[covered].astype(float), seed) for name, found in right.items()},
        against_routes(right, np.ones_like(covered), seed),
        against_routes(right, covered, seed),
    )


def against_routes(right: dict[str, Bools], among: Bools, seed: int) -> dict[str, Difference]:
    """The routes minus each of the other ways, on the same pairs."""
    rows = {name: found[among].astype(np.float64)[None] for name, found in right.items()}
    apart = {
        name: runs_difference(rows[ROUTES], other, seed=seed)
        for name, other in rows.items()
        if name != ROUTES
    }
    return {name: found for name, found in apart.items() if found is not None}
