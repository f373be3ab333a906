"""How far explanations move when nothing that matters changes, ours and LIME's."""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec

import numpy as np

from lexical_sae.attribution.explain import explain, explain_many
from lexical_sae.evaluation.bootstrap import mean_estimate
from lexical_sae.evaluation.explainers import input_texts, own_words
from lexical_sae.evaluation.input_game import MaskedText, can_mask, masked_text
from lexical_sae.evaluation.peers import lime_scores
from lexical_sae.evaluation.perturbation import Floats
from lexical_sae.evaluation.reading import spread
from lexical_sae.evaluation.stability import Movement, movement, with_other_case, with_synonym
from lexical_sae.evaluation.subject import Subject
from lexical_sae.report.finding import Cell, Estimate, Finding, FindingTable

REPEATED = 50  # texts that are explained twice
LIME_SAMPLES = 150


def measure_stability(subject: Subject) -> Finding:
    """The same text twice, in another case, and with a synonym."""
    same, apart = _repeated(subject)
    rows: list[tuple[Cell, ...]] = []
    installed, masks = find_spec("lime") is not None, can_mask(subject.model)
    lime = installed and masks
    changes = {"another case": with_other_case, "a synonym": with_synonym}
    ours: dict[str, list[Movement]] = {name: [] for name in changes}
    theirs: dict[str, list[Movement]] = {name: [] for name in ("nothing but its seed", *changes)}
    places = subject.some_texts(subject.peer_texts)
    sampled = {places[i] for i in spread(len(places), input_texts(subject))} if lime else set()
    for place in places:
        text = subject.test.texts[place]
        before = masked_text(subject.model, text)
        scores = own_words(before)
        of_lime = _lime(before, 0) if place in sampled else None
        if of_lime is not None:
            _add(theirs["nothing but its seed"], of_lime, _lime(before, 1))
        for name, change in changes.items():
            other = change(text)
            after = None if other is None else masked_text(subject.model, other)
            # scores can be compared only word by word, for the same label
            if after is None or after.n != before.n or after.label != before.label:
                continue
            _add(ours[name], scores, own_words(after))
            if of_lime is not None:
                _add(theirs[name], of_lime, _lime(after, 0))
        subject.advance(1)
    for who, moved in (("this model", ours), ("LIME", theirs)):
        for name, found in moved.items():
            if found:
                distance = mean_estimate([one.distance for one in found], subject.seed)
                kept = 100 * float(np.mean([one.top_kept for one in found]))
                rows.append(
                    (who, name, len(found), distance.value, distance.low, distance.high, kept)
                )
    columns = (
        *("explanation of", "changed", "texts", "1 − cosine", "from", "to"),
        "top five kept, %",
    )
    distances = [one.distance for one in ours["a synonym"]]
    notes = [
        "Twice the same call gives the same bits. Alone or among others the backbone's products "
        "are rounded differently, so there the largest difference of a contribution is given."
    ]
    if not masks:
        notes.append("Not compared: LIME, since the tokenizer has no mask token.")
    elif not installed:
        notes.append(
            'Not installed, so not compared: LIME; run pip install "lexical-sae[explainers]".'
        )
    return Finding(
        metrics={
            "same_explanation": Estimate(same),
            "batch_difference": Estimate(apart),
            "synonym_movement": mean_estimate(distances, subject.seed),
        },
        tables=(FindingTable("Movement of the scores of a text's words", columns, tuple(rows)),),
        notes=tuple(notes),
    )


def _repeated(subject: Subject) -> tuple[float, float]:
    """Share of texts explained twice to the same bits, and the largest difference of what a word
    gives alone and among other texts."""
    texts = [subject.test.texts[i] for i in subject.some_texts(REPEATED)]
    first, second = (explain_many(subject.model, texts) for _ in range(2))
    same = [a.to_json() == b.to_json() for a, b in zip(first, second, strict=True)]
    apart = 0.0
    for text, among in zip(texts, first, strict=True):
        alone = {word.word: word.contribution for word in explain(subject.model, text).vocabulary}
        others = {word.word: word.contribution for word in among.vocabulary}
        for word in alone.keys() | others.keys():
            apart = max(apart, abs(alone.get(word, 0.0) - others.get(word, 0.0)))
    return float(np.mean(same)), apart


def _lime(text: MaskedText, seed: int) -> Floats:
    return partial(lime_scores, text, text.n, samples=LIME_SAMPLES, seed=seed)()


def _add(found: list[Movement], before: Floats, after: Floats) -> None:
    one = movement(before, after)
    if one is not None:
        found.append(one)
