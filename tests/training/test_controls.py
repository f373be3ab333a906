"""The controls of a run: density, the accuracy bound, batches, batch size."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lexical_sae.training.accuracy_bound import AccuracyBound
from lexical_sae.training.batch_size import choose_batch_size
from lexical_sae.training.batching import Collate, EncodedTexts, LengthBuckets
from lexical_sae.training.decisions import texts_batch
from lexical_sae.training.density import AIM, DensityControl, above_half
from lexical_sae.training.objective import Objective
from lexical_sae.training.settings import Settings
from tests.tiny import TEXTS, tiny_model


def test_wanted_words_fall_geometrically_to_the_target() -> None:
    density = DensityControl(target_words=10, start_words=160)
    found = []
    for progress in (0, 0.15, 0.3, 0.45, 0.6, 1):
        density.observe(50)
        density.update(progress)
        found.append(density.wanted)
    assert found == pytest.approx([160, 80, 40, 20, 10, 10])
    assert density.aim == pytest.approx(AIM * 10)


def test_the_ramp_starts_at_what_the_warm_up_left_open() -> None:
    density = DensityControl(target_words=10, start_words=400)
    density.observe(40)
    density.begin()
    assert density.wanted == pytest.approx(40)
    sparse = DensityControl(target_words=10, start_words=400)
    sparse.observe(3)
    sparse.begin()
    assert sparse.wanted == pytest.approx(10)


def test_pressure_rises_above_the_target_and_falls_below() -> None:
    density = DensityControl(target_words=10, start_words=10)
    before = density.pressure
    density.observe(100)
    density.update(1.0)
    risen = density.pressure
    assert risen > before
    for _ in range(60):
        density.observe(1)
    density.update(1.0)
    assert density.pressure < risen


def test_pressure_eases_while_the_number_falls() -> None:
    """At the same number above the target: less after a fall than after standing still."""
    falling, still = (DensityControl(target_words=10, start_words=10) for _ in range(2))
    for control, numbers in ((falling, (200, 100)), (still, (190, 190))):
        for number in numbers:
            control.observe(number)
        control.update(1.0)
    assert falling.open_words == pytest.approx(still.open_words)
    assert falling.pressure < still.pressure


def test_it_brings_a_response_to_the_target() -> None:
    """Words open as 200·exp(−pressure·excess-driven force): the mean settles at the target."""
    density = DensityControl(target_words=20, start_words=80)
    words = 80.0
    for step in range(600):
        density.observe(words)
        density.update(step / 600)
        excess = max(0.0, math.log((density.open_words or 1) / density.aim))
        words += 0.2 * (200 * math.exp(-10 * density.pressure * excess) - words)
    assert 17 <= words <= 22


def test_density_state_survives_json() -> None:
    one, other = DensityControl(5, 20), DensityControl(5, 20)
    one.observe(17.3)
    one.update(0.3)
    other.load_state_dict(json.loads(json.dumps(one.state_dict())))
    assert (one.pressure, one.wanted, one.open_words) == (
        other.pressure,
        other.wanted,
        other.open_words,
    )


def test_an_accuracy_becomes_a_cross_entropy_by_measurement() -> None:
    bound = AccuracyBound(0.9, classes=2)
    bound.add(0.4, 0.82)
    bound.add(0.2, 0.94)
    assert bound.bound() == pytest.approx(0.2 + 0.2 * (0.94 - 0.9) / (0.94 - 0.82))
    strict = AccuracyBound(0.99, classes=2)
    strict.add(0.3, 0.9)
    assert 0 < strict.bound() < 0.3
    assert AccuracyBound(0.3, classes=2).bound() == pytest.approx(math.log(2))


@given(
    st.lists(st.tuples(st.floats(0, 3), st.floats(0, 1)), max_size=12),
    st.floats(0.01, 0.99),
    st.floats(0.01, 0.99),
)
def test_more_accuracy_never_allows_more_loss(
    points: list[tuple[float, float]], low: float, high: float
) -> None:
    low, high = sorted((low, high))
    bounds = []
    for target in (low, high):
        found = AccuracyBound(target, classes=4)
        for point in points:
            found.add(*point)
        bounds.append(found.bound())
    assert bounds[1] <= bounds[0] + 1e-9
    assert bounds[1] >= 0


lengths = st.lists(st.integers(1, 60), min_size=1, max_size=300)


@settings(max_examples=50)
@given(lengths, st.integers(1, 16), st.integers(0, 5))
def test_buckets_are_an_order_without_repeats(sizes: list[int], batch: int, epoch: int) -> None:
    buckets = LengthBuckets(sizes, batch, seed=3)
    buckets.set_epoch(epoch)
    order = list(buckets)
    assert len(order) == len(buckets)
    assert len(set(order)) == len(order)
    assert len(order) == (len(sizes) // batch * batch or len(sizes))
    assert order == list(buckets)


def test_batches_are_of_like_length_and_new_in_each_epoch() -> None:
    sizes = torch.randint(3, 60, (640,), generator=torch.Generator().manual_seed(0)).tolist()
    buckets = LengthBuckets(sizes, 32, seed=0)
    order = list(buckets)
    batches = [order[i : i + 32] for i in range(0, 640, 32)]
    padded = sum(32 * max(sizes[i] for i in batch) for batch in batches)
    assert padded < 1.15 * sum(sizes)
    buckets.set_epoch(1)
    assert list(buckets) != order
    other = LengthBuckets(sizes, 32, seed=1)
    assert list(other) != order


def test_collate_pads_to_the_longest_only() -> None:
    texts = EncodedTexts([[2, 5, 3], [2, 5, 6, 7, 3]], [1, 0])
    batch = Collate(pad_id=9)([texts[0], texts[1]])
    assert batch["input_ids"].tolist() == [[2, 5, 3, 9, 9], [2, 5, 6, 7, 3]]
    assert batch["attention_mask"].tolist() == [[1, 1, 1, 0, 0], [1] * 5]
    assert batch["labels"].tolist() == [1, 0]
    assert batch["index"].tolist() == [0, 1]


def test_the_batch_size_follows_the_memory() -> None:
    model: Any = tiny_model("bert")
    need = {b: model.memory_estimate(b, 24, open_words=12).total for b in (1, 8, 32)}
    assert choose_batch_size(model, 24, 12, free=2 * need[32]) == 32
    assert choose_batch_size(model, 24, 12, free=2 * need[8]) in (8, 16)
    assert choose_batch_size(model, 24, 12, free=0) == 1


@pytest.mark.parametrize("form", ["target_l1", "target_l0"])
def test_a_batch_with_few_open_words_is_not_pressed_by_a_mean_that_lags(form: str) -> None:
    """Else the last word closes while the running mean still says that many are open."""
    wanted = Settings.model_validate({"sparsity": {"form": form}, "target_words": 5})
    model = tiny_model("bert")
    objective = Objective(wanted, model.lexical, 3, steps_per_epoch=10, steps=100)
    objective.step = objective.warmup_steps
    objective.geco.start(bound=0.5)
    inputs = model.encode(TEXTS[:8]).model_inputs()

    def open_words_and_term() -> tuple[float, float]:
        objective.density.open_words = 400.0
        objective.density.progress = 1.0
        state = model.classify(**inputs)
        objective(state, texts_batch(torch.zeros(8, dtype=torch.long), torch.arange(8)))
        term = objective.finish_step()["sparsity"]
        return float(state.open_words.counts().float().mean()), term

    many, term = open_words_and_term()
    assert many > 5
    assert term > 0
    model.suppress(range(4, len(model.dictionary)))
    few, term = open_words_and_term()
    assert 0 < few < 4.5
    assert term == 0


def test_the_warm_up_holds_what_was_open_at_the_start() -> None:
    """Below that it is the task's loss alone, above it the sparsity term joins and presses more."""
    wanted = Settings.model_validate({"sparsity": {}, "target_words": 2, "start_words": 3})
    model = tiny_model("bert")
    objective = Objective(wanted, model.lexical, 3, steps_per_epoch=10, steps=100)
    batch = texts_batch(torch.zeros(8, dtype=torch.long), torch.arange(8))
    state = model.classify(**model.encode(TEXTS[:8]).model_inputs())
    many = float(state.open_words.counts().float().mean())
    assert many > 3
    ce = float(objective.task_loss(state.logits, batch.labels).detach())

    def loss(open_words: float | None) -> float:
        objective.density.open_words = open_words
        return float(objective(state, batch).detach())

    assert loss(None) == loss(3.0) == pytest.approx(ce, rel=1e-6)
    before = objective.density.pressure
    objective._seen.clear()
    assert loss(many) > ce
    objective.finish_step()
    assert not objective.in_circuit_phase
    assert objective.density.pressure > before


def test_pressure_that_sank_in_the_warm_up_is_there_again_when_the_circuits_begin() -> None:
    density = DensityControl(target_words=10, start_words=400)
    first = density.pressure
    for _ in range(50):
        density.observe(20)
        density.update(0.0)
    assert density.pressure < first
    density.begin()
    assert density.pressure == pytest.approx(first)


def test_terms_without_a_target_fade_below_it() -> None:
    assert above_half(300, 150) == above_half(150, 150) == 1
    assert above_half(112.5, 150) == pytest.approx(0.5)
    assert above_half(75, 150) == above_half(0, 150) == 0
