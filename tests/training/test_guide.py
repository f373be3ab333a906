"""The dense guide: it teaches, it is taught by the labels alone, and nothing of it stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from lexical_sae import LexicalSAE
from lexical_sae.training.fit import fit
from lexical_sae.training.guide import DenseGuide, watching
from lexical_sae.training.settings import Guide
from tests.tiny import tiny_model
from tests.training.small import save_backbone, small_config, small_dataset


def guide(distillation: float = 1.0, dropout: float = 0.0) -> DenseGuide:
    return DenseGuide(Guide(distillation=distillation), 8, 3, dropout, seed=0).double()


def test_the_gap_is_zero_where_the_words_say_what_the_guide_says() -> None:
    teacher, states = guide(), torch.randn(5, 8, dtype=torch.float64)
    said = F.linear(states, teacher.weight, teacher.bias)
    _, gap, _ = teacher(states, said + 3.0, torch.zeros(5, dtype=torch.long))
    assert float(gap.detach()) == pytest.approx(0.0, abs=1e-12)
    _, gap, _ = teacher(states, -said, torch.zeros(5, dtype=torch.long))
    assert float(gap.detach()) > 1e-6


def test_the_words_learn_from_the_guide_and_not_the_guide_from_the_words() -> None:
    teacher, states = guide(), torch.randn(5, 8, dtype=torch.float64)
    logits = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    _, gap, _ = teacher(states, logits, torch.zeros(5, dtype=torch.long))
    gap.backward()
    assert teacher.weight.grad is None
    assert logits.grad is not None
    known = F.linear(states, teacher.weight, teacher.bias).softmax(-1)
    # the gradient of a cross-entropy to soft labels: what is said minus what is known
    expected = (logits.softmax(-1) - known) / 5
    assert torch.allclose(logits.grad, expected.detach())


def test_the_guide_learns_the_labels_and_brings_its_gradient_to_every_position() -> None:
    teacher = guide()
    h = torch.randn(2, 4, 8, dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])
    teacher.seen.append(h)
    labels = torch.tensor([0, 2])
    states = teacher.take({"labels": labels, "attention_mask": mask})
    assert torch.allclose(states[1], h[1, :2].mean(0))
    own, _, _ = teacher(states, torch.zeros(2, 3, dtype=torch.float64), labels)
    own.backward()
    assert h.grad is not None
    assert torch.equal(h.grad.abs().sum(-1) > 0, mask.bool())
    assert teacher.weight.grad is not None
    assert teacher.weight.grad.abs().sum() > 0


def test_of_a_tagged_batch_the_guide_reads_the_decided_words() -> None:
    teacher, h = guide(), torch.randn(2, 3, 8)
    teacher.seen.append(h)
    labels = torch.tensor([[0, -100, 1], [-100, 2, -100]])
    rows = teacher.take({"labels": labels, "attention_mask": torch.ones(2, 3)})
    assert torch.equal(rows, torch.stack([h[0, 0], h[0, 2], h[1, 1]]))


def test_the_guide_sees_training_only_and_leaves_no_hook() -> None:
    model, teacher = tiny_model("bert"), guide()
    read = model.encode(["the film is lovely."]).model_inputs()
    with watching(teacher, model):
        model.eval()
        model.classify(**read)
        assert not teacher.seen
        model.train()
        model.classify(**read)
        assert len(teacher.seen) == 1
    assert not teacher.seen
    model.classify(**read)
    assert not teacher.seen


@pytest.mark.parametrize("guide_settings", [None, {"strength": 1.0, "distillation": 1.0}])
def test_nothing_of_the_guide_is_in_the_saved_model(
    tmp_path: Path, guide_settings: dict[str, Any] | None
) -> None:
    backbone = save_backbone(tmp_path / "backbone")
    config = small_config(backbone, guide=guide_settings, dictionary_rate_factor=1)
    done = fit(config, small_dataset(32), None, tmp_path / "run", log_every=1)
    assert done.trainer is not None
    logged = [line for line in done.trainer.state.log_history if "ce" in line]
    assert all(("guide" in line) == (guide_settings is not None) for line in logged)
    done.model.save_pretrained(tmp_path / "model")
    loaded = LexicalSAE.from_pretrained(tmp_path / "model")
    assert not [name for name in loaded.state_dict() if "guide" in name]
    assert not done.model.backbone._forward_hooks
