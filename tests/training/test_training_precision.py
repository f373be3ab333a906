"""precision: bf16 reaches the backbone while training, and nothing that is explained or kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from lexical_sae.attribution.verify import verify_sum
from lexical_sae.model.dense_twin import DenseTwin
from lexical_sae.model.lexical_sae import LexicalSAE
from lexical_sae.training import decisions
from lexical_sae.training.decisions import decide, in_half_precision
from lexical_sae.training.objective import Objective
from tests.tagged import tiny_tagger
from tests.training.small import save_backbone
from tests.training.test_decisions import inputs
from tests.training.test_fit import history, run


@pytest.fixture(scope="module")
def backbone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_backbone(tmp_path_factory.mktemp("backbone"))


def first_linear_dtypes(model: torch.nn.Module, seen: list[torch.dtype]) -> Any:
    layer = next(m for m in model.modules() if isinstance(m, torch.nn.Linear))
    return layer.register_forward_hook(lambda module, args, out: seen.append(out.dtype))


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_the_backbone_runs_in_it_and_the_sum_stays_exact(precision: str) -> None:
    model, seen = tiny_tagger(), []
    handle = first_linear_dtypes(model.backbone, seen)
    state, _ = decide(model, inputs([0, 1, 2]), precision=precision)
    handle.remove()
    assert seen == [torch.bfloat16 if precision == "bf16" else torch.float32]
    assert state.logits.dtype == state.open_words.value.dtype == torch.float32
    assert verify_sum(state).ok


@pytest.mark.parametrize("fast", [True, False])
def test_auto_is_bf16_where_that_is_faster(fast: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decisions, "low_precision_is_fast", lambda: fast)
    assert in_half_precision("auto", "cpu") is fast
    assert in_half_precision("bf16", "cpu")
    assert not in_half_precision("fp32", "cpu")
    assert not in_half_precision("auto", "mps")


def test_the_twins_head_is_in_full_precision_too(backbone: Path) -> None:
    twin = DenseTwin.from_backbone(backbone, ["a", "b"]).eval()
    texts = twin.tokenizer(["a fine film", "a dull one"], padding=True, return_tensors="pt")
    read = {"input_ids": texts["input_ids"], "attention_mask": texts["attention_mask"]}
    with torch.autocast("cpu", torch.bfloat16):
        halved = twin(**read)
    assert halved.logits.dtype == torch.float32
    torch.testing.assert_close(halved.logits, twin(**read).logits, atol=0.02, rtol=0.1)


def test_a_run_in_bf16_learns_as_one_in_fp32(
    backbone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, exact = Objective._terms, []

    def watched(self: Objective, state: Any, batch: Any, number: float) -> Any:
        exact.append(verify_sum(state).ok)
        return plain(self, state, batch, number)

    monkeypatch.setattr(Objective, "_terms", watched)
    full = run(backbone, tmp_path / "fp32", dropout=0.0)
    half = run(backbone, tmp_path / "bf16", dropout=0.0, precision="bf16")
    assert exact
    assert all(exact)
    losses = [torch.tensor(history(done, "ce")) for done in (full, half)]
    assert not torch.equal(*losses)
    torch.testing.assert_close(*losses, atol=0.1, rtol=0.1)
    assert isinstance(half.model, LexicalSAE)
    assert {p.dtype for p in half.model.parameters()} == {torch.float32}
