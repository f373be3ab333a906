"""The screen's precision changes the time, never the result."""

from __future__ import annotations

import copy
from unittest import mock

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lexical_sae.model import lexical_layer, screen
from lexical_sae.model.screen import make_screen
from tests.properties.cases import Case, cases
from tests.tiny import TEXTS, tiny_model


def low_precision() -> mock._patch[object]:
    """bfloat16 whatever the processor can, for any number of rows."""
    return mock.patch.multiple(screen, low_precision_is_fast=lambda: True, FEWEST_ROWS=1)


def full_precision() -> mock._patch[object]:
    return mock.patch.multiple(screen, low_precision_is_fast=lambda: False)


@given(cases(dtype=torch.float32, training=None))
def test_open_words_are_bitwise_the_same(case: Case) -> None:
    with full_precision():
        usual = case.state()
    with low_precision():
        other = case.state()
    for name in ("row", "word", "value", "position"):
        found = getattr(usual.open_words, name), getattr(other.open_words, name)
        assert torch.equal(*found), name
    assert torch.equal(usual.logits, other.logits)


@given(
    st.integers(0, 2**31), st.integers(1, 40), st.integers(1, 40), st.floats(0.01, 100), st.data()
)
def test_no_pair_above_its_bound_is_screened_out(
    seed: int, rows: int, size: int, scale: float, data: st.DataObject
) -> None:
    draw = torch.Generator().manual_seed(seed)
    h = scale * torch.randn(rows, size, generator=draw)
    E = torch.randn(50, size, generator=draw)
    b = torch.randn(50, generator=draw)
    true = h.double() @ E.double().T + b.double()  # [rows, 50]
    # bounds right below one of the true logits each: the hardest case there is
    pick = torch.randint(0, rows, (50,), generator=draw)
    near = true[pick, torch.arange(50)]
    bound = (near - data.draw(st.sampled_from([1e-7, 1e-6, 1e-3])) * scale).float()
    with low_precision():
        found = make_screen(h, E, b)
        assert found.rows.dtype == torch.bfloat16
        product = found.rows @ found.table.T
        let_through = product >= found.floor(bound, b)
    assert bool(let_through[(true > bound.double())].all())


def test_the_screen_keeps_little_that_is_not_open() -> None:
    draw = torch.Generator().manual_seed(0)
    h, E = torch.randn(256, 384, generator=draw), torch.randn(2000, 384, generator=draw)
    b = torch.zeros(2000)
    z = h @ E.T
    bound = z.flatten().quantile(0.99).expand(2000)
    with low_precision():
        found = make_screen(h, E, b)
        kept = int((found.rows @ found.table.T >= found.floor(bound, b)).sum())
    opened = int((z > bound).sum())
    assert opened <= kept <= 1.25 * opened


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_precisions_are_screened_as_they_are(dtype: torch.dtype) -> None:
    h, E, b = torch.ones(200, 4, dtype=dtype), torch.ones(3, 4, dtype=dtype), torch.zeros(3)
    with low_precision():
        assert make_screen(h, E, b.to(dtype)).rows is h


def test_few_rows_are_not_worth_a_copy_of_the_dictionary() -> None:
    h, E, b = torch.ones(2, 4), torch.ones(3, 4), torch.zeros(3)
    with mock.patch.object(screen, "low_precision_is_fast", return_value=True):
        assert make_screen(h, E, b).table is E


def test_a_dictionary_that_does_not_learn_is_rounded_once() -> None:
    model = tiny_model("bert")
    layer = model.lexical
    inputs = model.encode(TEXTS[:4]).model_inputs()
    with low_precision(), mock.patch.object(lexical_layer, "screens_low", return_value=True):
        learning = model.classify(**inputs).logits
        assert layer._low_table() is None
        layer.weight.requires_grad_(False)
        assert torch.equal(model.classify(**inputs).logits, learning)
        kept = layer._low_table()
        assert kept is not None
        assert layer._low_table() is kept
        copied = copy.deepcopy(model)
        with torch.no_grad():
            layer.weight.mul_(2)
        changed = layer._low_table()
        assert changed is not kept
        torch.testing.assert_close(changed.lengths, 2 * kept.lengths)
        again = copied.lexical._low_table()
        assert again is not None
        assert torch.equal(again.table, kept.table)
        twice = model.classify(**inputs).logits
        layer.weight.requires_grad_(True)
        assert torch.equal(model.classify(**inputs).logits, twice)


def test_suppressed_words_stay_out_of_reach() -> None:
    h, E, b = torch.ones(1, 4), 1e4 * torch.ones(1, 4), torch.zeros(1)
    with low_precision():
        found = make_screen(h, E, b)
        floor = found.floor(torch.tensor([torch.inf]), b)
    assert not bool((found.rows @ found.table.T >= floor).any())
