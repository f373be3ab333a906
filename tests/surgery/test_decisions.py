"""The fast search beside its plain form: cuts by subtraction, gaps and accuracy kept as they go."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lexical_sae.evaluation.reading import read_texts
from lexical_sae.surgery.decisions import Decisions
from lexical_sae.surgery.effect import after_removal
from lexical_sae.surgery.fairness import mean_fpr_gap
from lexical_sae.surgery.gap import flagged_rows
from lexical_sae.surgery.meters import GapMeter, Rows, TaskMeter, WrongMeter
from tests.tiny import TEXTS, tiny_model

HEADS = {
    name: tiny_model("bert", labels=["fine", "toxic"], head=name)
    for name in ("mlp", "linear", "bcos")
}
LABELS = [i % 2 for i in range(len(TEXTS))]
STATES = {name: read_texts(model, TEXTS, LABELS).state for name, model in HEADS.items()}
OPEN = {name: torch.unique(state.open_words.word).tolist() for name, state in STATES.items()}


def cut_all(found: Decisions, logits: torch.Tensor, words: list[int]) -> torch.Tensor:
    """The logits [N, C] of all rows after the cuts."""
    logits = logits.clone()
    for v in words:
        changed = found.cut(v)
        logits[changed.rows] = changed.logits
    return logits


@settings(max_examples=25, deadline=None)
@given(st.data())
@pytest.mark.parametrize("head", list(HEADS))
def test_words_that_leave_one_by_one_are_the_cut_of_all(head: str, data: st.DataObject) -> None:
    state = STATES[head]
    words = data.draw(st.lists(st.sampled_from(OPEN[head]), min_size=1, max_size=8, unique=True))
    found = Decisions(state)
    left = cut_all(found, state.logits, words[:-1])
    tried = found.try_cut(words[-1])
    before, plain = (after_removal(state, some).logits for some in (words[:-1], words))
    scale = float(state.logits.abs().max())
    torch.testing.assert_close(left, before, atol=1e-5 * scale, rtol=1e-5)
    torch.testing.assert_close(tried.logits, plain[tried.rows], atol=1e-5 * scale, rtol=1e-5)
    others = torch.ones(len(TEXTS), dtype=torch.bool)
    others[tried.rows] = False
    assert torch.equal(before[others], plain[others])


@pytest.mark.parametrize("head", list(HEADS))
def test_a_row_without_words_is_decided_as_an_empty_one(head: str) -> None:
    state = STATES[head]
    words = torch.unique(state.open_words.word[state.open_words.row == 0]).tolist()
    left = cut_all(Decisions(state), state.logits, words)
    plain = after_removal(state, words)
    assert not (plain.open_words.row == 0).any()
    assert torch.equal(left[0], plain.logits[0])


def test_meters_say_what_counting_anew_says() -> None:
    state, gold = STATES["mlp"], np.array(LABELS) == 1
    groups = {"first": np.arange(len(TEXTS)) < 70, "odd": np.arange(len(TEXTS)) % 3 == 0}
    gap = GapMeter(Rows(state, torch.tensor(LABELS)), [1], groups)
    right = TaskMeter(Rows(state, torch.tensor(LABELS)))
    wrong = WrongMeter(Rows(state, torch.tensor(LABELS)), [1], groups)
    gone: list[int] = []
    for v in OPEN["mlp"][:12]:
        expected = gap.tried(gap.decisions.try_cut(v)), right.tried(right.decisions.try_cut(v))
        both = wrong.tried(wrong.decisions.try_cut(v))
        gap.cut(v)
        right.cut(v)
        wrong.cut(v)
        gone.append(v)
        logits = after_removal(state, gone).logits
        assert gap.now == pytest.approx(expected[0])
        assert right.now == pytest.approx(expected[1])
        assert gap.now[0] == pytest.approx(mean_fpr_gap(flagged_rows(logits, [1]), gold, groups))
        assert right.now[0] == pytest.approx(
            float((logits.argmax(-1) == torch.tensor(LABELS)).double().mean())
        )
        together = [a + 1 - b for a, b in zip(gap.now, right.now, strict=True)]
        assert wrong.now == pytest.approx(together)
        assert both == pytest.approx(together)
