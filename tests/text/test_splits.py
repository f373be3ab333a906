"""The cut: a partition, the same every time, in proportion, and blind to the test split."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lexical_sae.text import DataError, TextDataset, cut_dataset, stratified_cut
from lexical_sae.text.source import Source, load_split, offered_splits

labels_of_rows = st.lists(st.integers(0, 4), min_size=2, max_size=200)
fractions = st.floats(0.01, 0.9)
seeds = st.integers(0, 2**32 - 1)


@given(labels_of_rows, fractions, seeds)
def test_cut_is_a_partition_in_order(labels: list[int], fraction: float, seed: int) -> None:
    kept, cut = stratified_cut(labels, fraction, seed)
    assert sorted([*kept, *cut]) == list(range(len(labels)))
    assert list(kept) == sorted(kept)
    assert list(cut) == sorted(cut)


@given(labels_of_rows, fractions, seeds)
def test_cut_keeps_proportions_and_every_class(
    labels: list[int], fraction: float, seed: int
) -> None:
    kept, cut = stratified_cut(labels, fraction, seed)
    taken, left = Counter(labels[i] for i in cut), Counter(labels[i] for i in kept)
    for label, size in Counter(labels).items():
        assert abs(taken[label] - fraction * size) < 1
        assert left[label] >= 1
    assert len(cut) <= max(1, round(fraction * len(labels)))


@given(labels_of_rows, fractions, seeds)
def test_cut_is_the_same_every_time(labels: list[int], fraction: float, seed: int) -> None:
    first, second = (stratified_cut(labels, fraction, seed)[1] for _ in range(2))
    assert np.array_equal(first, second)


def test_cut_has_the_whole_size_and_moves_with_the_seed() -> None:
    labels = [0] * 500 + [1] * 333 + [2]
    cuts = [stratified_cut(labels, 0.1, seed)[1] for seed in (0, 1)]
    assert [len(cut) for cut in cuts] == [83, 83]
    assert not np.array_equal(*cuts)
    assert 833 not in cuts[0]  # the class seen once stays in training


@pytest.mark.parametrize("fraction", [-0.1, 1.0, 1.5])
def test_bad_fraction(fraction: float) -> None:
    with pytest.raises(ValueError, match="below 1"):
        stratified_cut([0, 1], fraction, 0)


def toy(n: int, split: str = "train") -> TextDataset:
    return TextDataset(
        name="toy",
        split=split,
        task="classification",
        label_names=("a", "b"),
        texts=[f"{split} text {i}" for i in range(n)],
        labels=[i % 2 for i in range(n)],
        extra={"row": list(range(n))},
    )


def test_equal_texts_stay_together() -> None:
    texts = [f"text {i // 4}" if i % 2 else f"TEXT  {i // 4}" for i in range(200)]
    data = replace(toy(200), texts=texts, labels=[i // 4 % 2 for i in range(200)])
    rest, cut = cut_dataset(data, 0.2, 0, into="validation")
    assert len(cut) == 40
    assert len(rest) == 160
    assert not {t.split()[1] for t in rest.texts} & {t.split()[1] for t in cut.texts}


def test_too_few_rows_to_cut() -> None:
    with pytest.raises(DataError, match=r"toy has too few rows \(2\)"):
        cut_dataset(toy(2), 0.1, 0, into="validation")


def test_tagging_is_cut_too() -> None:
    data = TextDataset(
        name="toy",
        split="train",
        task="tagging",
        label_names=("O",),
        tokens=[[f"t{i}"] for i in range(30)],
        tags=[[0]] * 30,
    )
    rest, cut = cut_dataset(data, 0.1, 3, into="validation")
    assert (len(rest), len(cut)) == (27, 3)
    assert cut.tokens != data.tokens[:3]


def source_of(*splits: str) -> tuple[Source, list[str]]:
    asked: list[str] = []

    def load(split: str) -> TextDataset:
        asked.append(split)
        return toy(100, split)

    return Source("toy", splits, load), asked


@given(seeds, st.floats(0.05, 0.5))
def test_validation_never_touches_test(seed: int, fraction: float) -> None:
    source, asked = source_of("train", "test")
    train = load_split(source, "train", fraction, seed)
    validation = load_split(source, "dev", fraction, seed)
    assert "test" not in asked
    assert sorted(train.extra["row"] + validation.extra["row"]) == list(range(100))
    assert validation.split == "validation"
    assert load_split(source, "test", fraction, seed) == toy(100, "test")


@given(seeds, st.floats(0.05, 0.5))
def test_test_part_of_a_single_split_never_moves(seed: int, fraction: float) -> None:
    source, _ = source_of("train")
    parts = {s: load_split(source, s, fraction, seed) for s in ("train", "validation", "test")}
    assert parts["test"] == load_split(source, "test")
    assert sorted(row for part in parts.values() for row in part.extra["row"]) == list(range(100))
    assert any("cut from train" in note for note in parts["test"].notes)


def test_offered_splits() -> None:
    def offered(*splits: str, fraction: float = 0.1) -> tuple[str, ...]:
        return offered_splits(source_of(*splits)[0], fraction)

    assert offered("train") == ("train", "validation", "test")
    assert offered("train", "test", fraction=0) == ("train", "test")
    assert offered("train", "validation") == ("train", "validation")
    assert offered("test") == ("test",)


def test_a_split_that_is_not_offered() -> None:
    source, _ = source_of("train", "validation")
    with pytest.raises(DataError, match="no labelled test split; it offers train, validation"):
        load_split(source, "test")
    assert load_split(source, "train") == toy(100)  # nothing is cut where nothing is missing
    with pytest.raises(DataError, match="'holdout' is not a split"):
        load_split(source, "holdout")
    with pytest.raises(DataError, match="validation_fraction is 1"):
        load_split(source, "train", validation_fraction=1)
