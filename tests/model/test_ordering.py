"""The fast orders against the obvious ones."""

from __future__ import annotations

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from lexical_sae.model.ordering import ascending, grouped
from lexical_sae.model.screen import at_least


@given(st.integers(1, 70_000), st.lists(st.integers(0, 2**31), max_size=60))
def test_groups_are_those_of_a_stable_sort(groups: int, drawn: list[int]) -> None:
    index = torch.tensor([number % groups for number in drawn], dtype=torch.long)
    order, offsets = grouped(index, groups)
    assert torch.equal(order, torch.argsort(index, stable=True))
    every = torch.arange(groups + 1)
    assert torch.equal(offsets, torch.searchsorted(index[order], every))


@pytest.mark.parametrize("groups", [2**16, 2**16 + 1])
def test_the_last_group_is_found_on_both_sides_of_the_limit(groups: int) -> None:
    index = torch.tensor([groups - 1, 0, groups - 1])
    order, offsets = grouped(index, groups)
    assert order.tolist() == [1, 0, 2]
    assert offsets[-2:].tolist() == [1, 3]


@given(st.lists(st.integers(0, 2**60), max_size=60))
def test_keys_ascend(keys: list[int]) -> None:
    assert ascending(torch.tensor(keys, dtype=torch.long)).tolist() == sorted(keys)


@given(
    st.integers(0, 2**31),
    st.integers(0, 9),
    st.integers(1, 21),
    st.sampled_from([torch.float32, torch.bfloat16, torch.float64]),
)
@example(seed=128, rows=4, words=8, dtype=torch.float32)  # -0 where the floor is 0
def test_what_is_at_least_the_floor_is_found_in_order(
    seed: int, rows: int, words: int, dtype: torch.dtype
) -> None:
    draw = torch.Generator().manual_seed(seed)
    # whole numbers: many are equal to their floor, and there are both zeros
    z = torch.randint(-3, 4, (rows, words), generator=draw).to(dtype)
    z = torch.where(torch.rand(z.shape, generator=draw) < 0.5, -z, z)
    floor = torch.randint(-3, 4, (words,), generator=draw).to(dtype)
    floor[torch.rand(words, generator=draw) < 0.2] = torch.inf  # suppressed words
    plain = (z >= floor).nonzero(as_tuple=True)
    found = at_least(z.clone(), floor)
    assert torch.equal(found[0], plain[0])
    assert torch.equal(found[1], plain[1])
