"""The parts of a gap add up; a cut is found; LEACE and probes do what they say."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from lexical_sae.evaluation.reading import read_texts
from lexical_sae.model.heads import LinearHead
from lexical_sae.model.open_words import one_source_each
from lexical_sae.model.state import CircuitState
from lexical_sae.surgery.effect import after_removal
from lexical_sae.surgery.erasure import (
    dense_slice,
    erasing,
    fit_leace,
    logits_after_slice,
    pooled_states,
    rows_after_slice,
    slice_words,
)
from lexical_sae.surgery.front import candidate_words, greedy_cut, walk
from lexical_sae.surgery.gap import (
    GapParts,
    decompose_gap,
    direction_of,
    flagged_rows,
    positive_scores,
)
from lexical_sae.surgery.leak import measure_leak, sparse_rows
from lexical_sae.surgery.meters import GapMeter, Rows, TaskMeter
from tests.tiny import TEXTS, tiny_model

MODEL = tiny_model("bert", labels=["fine", "toxic"])
READING = read_texts(MODEL, TEXTS, [i % 2 for i in range(len(TEXTS))])
POSITIVE = np.array([i % 2 == 1 for i in range(len(TEXTS))])
GROUPS = {word: np.array([word in text for text in TEXTS]) for word in ("film", "garden")}
SAID = flagged_rows(READING.state.logits, [1])


def linear_state(rows: int, words: list[tuple[int, int]], weights: list[float]) -> CircuitState:
    """Rows that open words (row, word) at 1; each word gives its weight to the second class, and
    the first class is ahead by 1."""
    row, word = (torch.tensor(column) for column in zip(*sorted(words), strict=True))
    value = torch.ones(len(words))
    open_words = one_source_each(
        row, word, value, value, torch.zeros_like(row), shape=(rows,), dictionary_size=len(weights)
    )
    head = LinearHead(len(weights), 2)
    with torch.no_grad():
        head.weight.copy_(torch.tensor([[0.0, weight] for weight in weights]))
        head.bias.copy_(torch.tensor([1.0, 0.0]))
    return CircuitState(head(open_words), open_words, head)


def test_the_words_of_a_gap_add_up_to_the_difference_of_the_margins() -> None:
    direction = direction_of(["fine", "toxic"], ["toxic"])
    assert direction.tolist() == [-1.0, 1.0]
    margin = (READING.state.logits.double() @ direction).numpy()
    for part in decompose_gap(READING.state, direction, SAID, POSITIVE, GROUPS):
        rows = GROUPS[part.group]
        expected = margin[rows & ~POSITIVE].mean() - margin[~rows & ~POSITIVE].mean()
        assert part.difference == pytest.approx(expected)
        assert float(part.words.sum()) + part.bias == pytest.approx(expected, abs=1e-5)
        top = part.top(3)
        assert top[0][1] == pytest.approx(float(part.words.max()))
        assert part.rows == int((rows & ~POSITIVE).sum())
        assert part.flagged == int((rows & ~POSITIVE & SAID).sum())


def test_three_classes_and_bad_ones() -> None:
    found = direction_of(["hate", "normal", "offensive"], ["hate", "offensive"])
    assert found.tolist() == [0.5, -1.0, 0.5]
    with pytest.raises(ValueError, match="expected some, but not all"):
        direction_of(["a", "b"], ["a", "b"])
    with pytest.raises(ValueError, match="expected some, but not all"):
        direction_of(["a", "b"], ["c"])


def test_the_greedy_cut_lowers_the_gap_and_keeps_the_accuracy() -> None:
    model = tiny_model("bert", labels=["fine", "toxic"], open_words=20)
    state = read_texts(model, TEXTS, [0] * len(TEXTS)).state
    spurious = int(model.dictionary.coordinates("garden")[0])
    with torch.no_grad():
        model.head.W1.zero_()
        model.head.W1[spurious, 0] = 5000.0
        model.head.W2.copy_(torch.tensor([[-1.0], [1.0]]).expand_as(model.head.W2))
        model.head.b2.copy_(torch.tensor([0.1, -0.1]))
    state = state.with_open_words(state.open_words)
    assert (state.open_words.word == spurious).any()
    rows = np.zeros(len(TEXTS), dtype=bool)
    rows[state.open_words.row[state.open_words.word == spurious]] = True
    gold = torch.zeros(len(TEXTS), dtype=torch.long)
    said = flagged_rows(state.logits, [1])
    assert np.array_equal(said, positive_scores(state.logits, [1]) > 0.5)
    assert said[rows].all()
    positive = gold.numpy() == 1
    direction = direction_of(["fine", "toxic"], ["toxic"])
    parts = decompose_gap(state, direction, said, positive, {"g": rows})
    assert parts[0].top(1)[0][0] == spurious
    candidates = candidate_words([part.words for part in parts])
    assert candidates == [spurious]
    path = greedy_cut(Rows(state, gold), {"g": rows}, Rows(state, gold), [1], candidates)
    assert [step.coordinate for step in path] == [spurious]
    assert path[0].left == 0
    assert path[0].accuracy == 1
    assert greedy_cut(Rows(state, gold), {"g": rows}, Rows(state, gold), [1], []) == []
    assert candidate_words([]) == []


def test_a_group_that_two_words_flag_by_far_is_freed_of_both() -> None:
    """No single word changes a decision, so a search by decisions would stop before it began."""
    state = linear_state(80, [(i, v) for i in range(40) for v in (0, 1)], [3.0, 3.0, 0.0])
    gold, rows = torch.zeros(80, dtype=torch.long), np.arange(80) < 40
    assert np.array_equal(flagged_rows(state.logits, [1]), rows)
    assert np.array_equal(flagged_rows(after_removal(state, [0]).logits, [1]), rows)
    path = greedy_cut(Rows(state, gold), {"g": rows}, Rows(state, gold), [1], [0, 1, 2])
    assert [step.coordinate for step in path] == [0, 1]
    assert [step.left for step in path] == [0.5, 0.0]


def test_a_price_spares_words_that_the_task_needs() -> None:
    """Word 0 makes most of the gap and is what the task's toxic rows are known by."""
    biased = linear_state(80, [(i, int(i >= 20)) for i in range(32)], [3.0, 3.0])
    groups, rows = {"g": np.arange(80) < 40}, Rows(biased, torch.zeros(80, dtype=torch.long))
    task = linear_state(100, [(i, 0) for i in range(10)], [3.0, 3.0])
    labels = (torch.arange(100) < 10).long()
    paths = {
        price: walk(
            GapMeter(rows, [1], groups),
            TaskMeter(Rows(task, labels)),
            [0, 1],
            price,
            largest_loss=0.2,
            steps=5,
        )
        for price in (0.0, 10.0)
    }
    assert [step.coordinate for step in paths[0.0]] == [0, 1]
    assert [step.coordinate for step in paths[10.0]] == [1]
    assert paths[10.0][0].accuracy == 1.0
    for loss, words in ((0.2, [0, 1]), (0.0, [1])):  # the best path that the task can bear
        path = greedy_cut(rows, groups, Rows(task, labels), [1], [0, 1], largest_loss=loss)
        assert [step.coordinate for step in path] == words


def test_errors_keep_words_that_the_decision_needs() -> None:
    """Word 0 flags half of the group and is what all toxic rows are known by; word 1 flags a
    quarter of the group and nothing else. Without both there is no gap, and nothing is found."""
    flagged = {*range(20)} | {*range(80, 140)}
    opened = [(i, 0) for i in flagged] + [(i, 1) for i in range(20, 30)]
    state = linear_state(140, opened, [3.0, 3.0])
    rows = Rows(state, (torch.arange(140) >= 80).long())
    groups = {"g": np.arange(140) < 40}
    found = {
        aim: greedy_cut(rows, groups, rows, [1], [0, 1], aim=aim, largest_loss=1.0)
        for aim in ("gap", "gap and errors")
    }
    assert [step.coordinate for step in found["gap"]] == [0, 1]
    assert [step.coordinate for step in found["gap and errors"]] == [1]


def test_every_word_at_the_end_brought_something_whatever_the_rounding() -> None:
    """Gaps are kept by adding up, so that equal ones differ in their last digits."""
    groups = {"a": np.arange(120) < 40, "b": (np.arange(120) >= 40) & (np.arange(120) < 70)}
    for seed in range(60):
        draw = torch.Generator().manual_seed(seed)
        opened = torch.nonzero(torch.rand(120, 8, generator=draw) < 0.2).tolist()
        weights = (3 * torch.randn(8, generator=draw)).tolist()
        state = linear_state(120, [(i, v) for i, v in opened], weights)
        rows = Rows(state, torch.zeros(120, dtype=torch.long))
        path = greedy_cut(rows, groups, rows, [1], list(range(8)), largest_loss=1.0)
        gaps = [step.left for step in path]
        assert all(gap > gaps[-1] + 1e-9 for gap in gaps[:-1]), seed


def test_a_group_that_is_flagged_less_has_its_gap_from_words_that_keep_it_so() -> None:
    words = [torch.tensor([0.5, -0.2, 0.0]), torch.tensor([0.1, -0.9, 0.0])]
    parts = [
        GapParts("g", 40, 20, 40, gap, 0.0, one, 0.0)
        for gap, one in zip((0.3, -0.4), words, strict=True)
    ]
    assert candidate_words(words) == [0]
    assert candidate_words([part.wider for part in parts]) == [1, 0]


def test_leace_hides_a_concept_from_linear_probes_on_the_slice() -> None:
    concept = torch.tensor([float("film" in text) for text in TEXTS])
    words = slice_words(READING.state, count=20)
    dense = dense_slice(READING.state, words)
    assert torch.equal(dense, READING.state.open_words.to_dense()[:, words])
    eraser = fit_leace(dense, concept)
    erased = eraser(dense)
    apart = erased[concept == 1].mean(0) - erased[concept == 0].mean(0)
    assert float(apart.abs().max()) < 1e-4
    before = measure_leak("open words", dense, concept.numpy() > 0, dense, concept.numpy() > 0)
    after = measure_leak("open words", erased, concept.numpy() > 0, erased, concept.numpy() > 0)
    assert [leak.probe for leak in before] == ["linear", "mlp"]
    assert before[0].auc.value is not None
    assert after[0].auc.value is not None
    assert before[0].auc.value > after[0].auc.value + 0.2
    same = logits_after_slice(READING.state, words, lambda x: x)
    torch.testing.assert_close(same, READING.state.logits, atol=1e-4, rtol=1e-4)
    left = rows_after_slice(READING.state, words, eraser).toarray()
    outside = torch.ones(len(MODEL.dictionary), dtype=torch.bool)
    outside[words] = False
    values = READING.state.open_words.to_dense()[:, outside].numpy()
    assert np.allclose(left[:, :20], erased.numpy(), atol=1e-5)
    assert np.allclose(left[:, 20:][:, outside.numpy()], values)
    assert not left[:, 20:][:, words.numpy()].any()
    with pytest.raises(ValueError, match="on all rows or on none"):
        fit_leace(dense, torch.ones(len(TEXTS)))


def test_the_slice_has_the_concept_first_however_rare() -> None:
    times = torch.bincount(READING.state.open_words.word, minlength=len(MODEL.dictionary))
    seen = torch.nonzero(times).flatten()
    rarest, never = int(seen[times[seen].argmin()]), int(times.argmin())
    assert times[never] == 0
    assert rarest not in slice_words(READING.state, count=5).tolist()
    found = slice_words(READING.state, [rarest, never], count=5).tolist()
    assert rarest in found
    assert never not in found
    assert len(found) == 5


def test_the_hidden_state_is_erased_at_every_position_and_only_within_the_block() -> None:
    states = pooled_states(MODEL, TEXTS[:20])
    assert states.shape == (20, 32)
    before = READING.state.logits[:20]
    with erasing(MODEL, lambda h: 0 * h):
        empty = read_texts(MODEL, TEXTS[:20], [0] * 20).state
    assert len(torch.unique(empty.logits, dim=0)) == 1
    again = read_texts(MODEL, TEXTS[:20], [0] * 20).state
    torch.testing.assert_close(again.logits, before)


def test_a_probe_without_both_kinds_of_rows_is_undefined() -> None:
    table = sparse_rows(READING.state.open_words)
    assert table.shape == (len(TEXTS), len(MODEL.dictionary))
    none = np.zeros(len(TEXTS), dtype=bool)
    found = measure_leak("open words", table, none, table, POSITIVE)
    assert found[0].auc.value is None
    assert f"0 of the {len(TEXTS)} training rows hold it" in found[0].auc.why


def test_a_rare_concept_is_told_by_both_probes() -> None:
    draw = np.random.default_rng(0)
    marks = [draw.random(1500) < 0.03 for _ in range(2)]
    rows = [
        draw.normal(size=(1500, 20)) + 2.5 * mark[:, None] * (np.arange(20) < 3) for mark in marks
    ]
    found = measure_leak("x", rows[0], marks[0], rows[1], marks[1])
    assert all(leak.auc.value is not None and leak.auc.value > 0.9 for leak in found)
