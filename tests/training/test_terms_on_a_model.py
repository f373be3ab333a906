"""Every term on a real model: its gradient lands where it must, and a small step lowers it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from lexical_sae.attribution.contributions import compute_attribution_tensor
from lexical_sae.model.lexical_sae import LexicalSAE
from lexical_sae.model.open_words import OpenWords
from lexical_sae.model.state import CircuitState
from lexical_sae.training.losses.anchor import anchor
from lexical_sae.training.losses.centroids import ClassCentroids
from lexical_sae.training.losses.completeness import completeness
from lexical_sae.training.losses.content import content
from lexical_sae.training.losses.frequencies import OpenRates, frequency_penalty
from lexical_sae.training.losses.reference_words import ReferenceWordsBuilder
from lexical_sae.training.losses.separation import separation_contrastive, separation_cosine
from lexical_sae.training.losses.sharpness import sharpness
from lexical_sae.training.losses.sparsity import df_flops, gate_sparsity, l1_l0
from lexical_sae.training.losses.target import target_l0, target_l1
from tests.tiny import TEXTS, tiny_model

BATCH = TEXTS[3:200:17]  # 12 texts
HEAD = ("head.W1", "head.W2")
LAYER = ("lexical.weight", "lexical.threshold")
ALL = (*HEAD, *LAYER)
Term = Callable[[LexicalSAE, CircuitState, Tensor], Tensor]


@functools.cache
def _model(gate: str, task: str) -> LexicalSAE:
    model = tiny_model(gate=gate, task=task, head_width=8).double().eval()
    model.lexical.train()  # keeps the window's pairs, without dropout in the backbone
    for layer in (model.head.W1, model.head.W2):
        layer.data.mul_(5)
    return model


def _read(model: LexicalSAE) -> tuple[CircuitState, Tensor]:
    encoded = model.encode(BATCH)
    run = model.tag if model.config.task == "tagging" else model.classify
    state = run(encoded.input_ids, encoded.attention_mask)
    return state, compute_attribution_tensor(state, row_classes=state.predicted)


class _Store:
    """What the untrained model leaves for the terms: fixed while it is trained."""

    def __init__(self, model: LexicalSAE) -> None:
        state, a = _read(model)
        words, size = state.open_words, state.open_words.dictionary_size
        self.centroids = ClassCentroids(3, size).double()
        # as if classes had been mixed up before: rows count for any class in turn
        turn = torch.arange(words.rows).view(words.shape) % 3
        self.centroids.update(a.detach(), words, turn, state.real_rows)
        self.rates = OpenRates(size).double()
        self.rates.update(words, state.real_rows)
        builder = ReferenceWordsBuilder(size)
        builder.add(torch.arange(len(BATCH)), words.subset(words.word % 2 == 0))
        self.reference = builder.build()
        self.labels, self.logits = turn, state.logits.detach()

    def inside(self, words: OpenWords) -> Tensor:
        return self.reference.contains(torch.arange(len(BATCH)), words)


@functools.cache
def _store(gate: str, task: str) -> _Store:
    return _Store(_model(gate, task))


def _terms(store: _Store) -> dict[str, tuple[tuple[str, ...], Term]]:
    """Which parameters each term must reach, and the term."""
    mask = {"fraction": 0.1, "temperature": 0.1}

    def term_completeness(form: str) -> Term:
        # the teacher stays where it was: its own move is no merit of the step
        return lambda m, s, a: completeness(
            replace(s, logits=store.logits), a, store.labels, form=form, rows=s.real_rows, **mask
        )

    def apart(s: CircuitState) -> tuple[OpenWords, Tensor, ClassCentroids]:
        return s.open_words, s.predicted, store.centroids

    return {
        "completeness kl": ((*ALL, "head.b2"), term_completeness("kl")),
        "completeness ce": ((*ALL, "head.b2"), term_completeness("ce")),
        "contrastive": (
            ALL,
            lambda m, s, a: separation_contrastive(a, *apart(s), 0.5, rows=s.real_rows),
        ),
        "cosine": (ALL, lambda m, s, a: separation_cosine(a, *apart(s), rows=s.real_rows)),
        "sharpness": (ALL, lambda m, s, a: sharpness(a, s.open_words, s.real_rows)),
        "anchor": (
            ALL,
            lambda m, s, a: anchor(a, store.inside(s.open_words), s.open_words, s.real_rows),
        ),
        "content": (
            ALL,
            lambda m, s, a: content(a, s.open_words.position % 2 == 0, s.open_words, s.real_rows),
        ),
        "l1_l0": (LAYER, lambda m, s, a: l1_l0(s.open_words, rows=s.real_rows)),
        "gate": (
            LAYER,
            lambda m, s, a: gate_sparsity(
                s.open_words, m.lexical.threshold, m.lexical.width, s.real_rows
            ),
        ),
        "df_flops": (
            LAYER,
            lambda m, s, a: df_flops(s.open_words, store.rates.rate, s.real_rows),
        ),
        "target_l1": (LAYER, lambda m, s, a: _log(target_l1, s.open_words, s.real_rows)),
        "target_l0": (
            LAYER,
            lambda m, s, a: _log(
                target_l0, s.open_words, s.real_rows, m.lexical.threshold, m.lexical.width
            ),
        ),
        "frequency": (
            ("lexical.threshold",),
            lambda m, s, a: frequency_penalty(
                store.rates.rate,
                m.lexical.threshold,
                m.lexical.spread,
                40.0,
                open_ema=12.0,
                keep=m.lexical.keep,
            ),
        ),
    }


def _log(
    term: Callable[..., Tensor], words: OpenWords, rows: Tensor | None, *given: Tensor
) -> Tensor:
    """A target term as a function: its value is constant by design, so add log(surrogate)."""
    found = term(words, *given, 24.0, 12.0, rows=rows)
    if not given:
        per_row = words.to_dense().flatten(0, -2).sum(-1)
    else:
        z = words.sources.logit - given[0][words.word]
        per_row = torch.zeros(words.rows, dtype=z.dtype).index_add(
            0, words.row, torch.sigmoid(z / given[1])
        )
    kept = per_row if rows is None else per_row[rows.reshape(-1)]
    return found + kept.mean().log().detach()


OF_ATTRIBUTION = ["completeness kl", "completeness ce", "contrastive", "cosine", "sharpness"]
OF_ATTRIBUTION += ["anchor", "content"]
OF_THE_LAYER = ["l1_l0", "gate", "df_flops", "target_l1", "target_l0", "frequency"]
# a tagged row is one position, so its share of content is 0 or 1 and cannot move
CASES = [(n, t) for n in OF_ATTRIBUTION + OF_THE_LAYER for t in ("classification", "tagging")]
CASES.remove(("content", "tagging"))


@pytest.mark.parametrize("gate", ["shift", "jump"])
@pytest.mark.parametrize(("name", "task"), CASES)
def test_gradients_land_where_they_must_and_a_step_lowers_the_term(
    name: str, gate: str, task: str
) -> None:
    model, store = _model(gate, task), _store(gate, task)
    wanted, term = _terms(store)[name]
    before = term(model, *_read(model))
    parameters = dict(model.named_parameters())
    own = {n: p for n, p in parameters.items() if n.startswith(("head.", "lexical."))}
    model.zero_grad()
    before.backward()
    reached = {n for n, p in own.items() if p.grad is not None and bool(p.grad.any())}
    assert set(wanted) <= reached
    assert reached <= {*wanted, "lexical.bias"}
    assert all(p.grad is None or torch.isfinite(p.grad).all() for p in parameters.values())

    # the jump's threshold has a straight-through gradient, which need not be that of the value
    straight = gate == "jump" and name not in ("gate", "target_l0", "frequency")
    steps = {n: own[n] for n in wanted if not (straight and n == "lexical.threshold")}
    saved = {n: p.detach().clone() for n, p in steps.items()}
    length = sum(float(p.grad.square().sum()) for p in steps.values()) ** 0.5
    try:
        with torch.no_grad():
            for p in steps.values():
                p.sub_(p.grad, alpha=1e-3 / length)
            after = term(model, *_read(model))
    finally:
        with torch.no_grad():
            for n, p in steps.items():
                p.copy_(saved[n])
    assert float(after) < float(before.detach())
