"""A shared head: rows move together by meaning, fold into one table, and survive a kill."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.utils import parametrize
from transformers import TrainerCallback

from lexical_sae.model.lexical_sae import LexicalSAE
from lexical_sae.training.fit import fit
from lexical_sae.training.shared_head import computed_once, fold_head, share_head
from tests.tiny import TEXTS, tiny_model
from tests.training.small import save_backbone, small_config, small_dataset


def shared(**options: Any) -> LexicalSAE:
    model = tiny_model("bert", **options)
    share_head(model, 0.5, seed=0)
    return model


@pytest.mark.parametrize("options", [{}, {"hidden_bias": True}, {"head": "linear"}])
def test_folding_changes_no_logit_and_leaves_a_plain_table(options: dict[str, Any]) -> None:
    model = shared(**options)
    with torch.no_grad():
        table = next(p for name, p in model.head.named_parameters() if name.endswith("original"))
        table.normal_(std=0.1)
    inputs = model.encode(TEXTS[:6]).model_inputs()
    before = model.classify(**inputs).logits
    names = set(tiny_model("bert", **options).state_dict())
    assert set(model.state_dict()) != names
    fold_head(model)
    assert set(model.state_dict()) == names
    assert torch.equal(model.classify(**inputs).logits, before)
    assert isinstance(model.head.word_table(), torch.nn.Parameter)
    fold_head(model)  # and again, to no effect


def test_a_word_that_is_open_moves_its_neighbours() -> None:
    model = shared()
    _twin_rows(model, 3, 4)
    share: Any = model.head.parametrizations.W1[0]  # type: ignore[union-attr, index]
    before = model.head.word_table().detach().clone()
    loss = model.head.word_table()[3].sum()
    (gradient,) = torch.autograd.grad(loss, share.shared)
    with torch.no_grad():
        share.shared.sub_(gradient)
    moved = model.head.word_table().detach() - before
    torch.testing.assert_close(moved[3], moved[4])
    assert float(moved[3].abs().min()) > 0


def _twin_rows(model: LexicalSAE, left: int, right: int) -> None:
    share: Any = model.head.parametrizations.W1[0]  # type: ignore[union-attr, index]
    share.meaning[right] = share.meaning[left]


def test_the_table_is_added_up_once_per_step() -> None:
    model = shared()
    calls = []
    share: Any = model.head.parametrizations.W1[0]  # type: ignore[union-attr, index]
    share.register_forward_hook(lambda *_: calls.append(1))
    with computed_once():
        state = model.classify(**model.encode(TEXTS[:4]).model_inputs())
        state.effective_weights()
    assert len(calls) == 1
    state.logits.sum().backward()
    assert share.shared.grad is not None


class Kill(TrainerCallback):
    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.global_step == 9:
            control.should_training_stop = True
            control.should_save = True


@pytest.mark.parametrize("more", [{}, {"early_stopping": 3}, {"weight_average": 0.9}])
def test_a_run_that_was_killed_goes_on(tmp_path: Path, more: dict[str, Any]) -> None:
    backbone = save_backbone(tmp_path / "backbone")
    config = small_config(backbone, shared_head=0.1, epochs=2, **more)
    data, held = small_dataset(64), small_dataset(16, seed=1)

    def run(folder: str, **options: Any) -> tuple[dict[int, float], Any]:
        done = fit(config, data, held, tmp_path / folder, log_every=1, **options)
        assert done.trainer is not None
        log = done.trainer.state.log_history
        return {line["step"]: line["loss"] for line in log if "ce" in line}, done.model

    whole, model = run("whole")
    assert not parametrize.is_parametrized(model.head)
    run("parts", callbacks=[Kill()])
    parts, resumed = run("parts", resume=True)
    assert parts == whole
    assert torch.equal(resumed.head.W1, model.head.W1)
    model.save_pretrained(tmp_path / "model")
    loaded = LexicalSAE.from_pretrained(tmp_path / "model")
    assert torch.equal(loaded.head.word_table(), model.head.W1)
