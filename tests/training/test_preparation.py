"""Dropout and frozen embeddings take hold in every family."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from lexical_sae.model.lexical_sae import LexicalSAE
from lexical_sae.training.preparation import prepare_model
from lexical_sae.training.settings import Settings
from tests.tiny import FAMILIES, TEXTS, tiny_model


def _twice(model: LexicalSAE) -> tuple[Tensor, Tensor]:
    model.train()
    encoded = model.encode(TEXTS[:4])
    one, other = (model.hidden_states(encoded.input_ids, encoded.attention_mask) for _ in range(2))
    return one, other


@pytest.mark.parametrize("family", FAMILIES)
def test_without_dropout_two_forward_passes_are_identical(family: str) -> None:
    model = tiny_model(family)
    prepare_model(model, Settings(dropout=0.3))
    assert not torch.equal(*_twice(model))
    prepare_model(model, Settings(dropout=0.0))
    assert torch.equal(*_twice(model))


@pytest.mark.parametrize("family", FAMILIES)
def test_attention_has_dropout_too(family: str) -> None:
    """With every other dropout off, what still differs is the attention's own."""
    model = tiny_model(family)
    prepare_model(model, Settings(dropout=0.3))
    for name, module in model.backbone.named_modules():
        layer = type(model.backbone.get_submodule(name.rpartition(".")[0])).__name__
        of_attention = layer.endswith(("SelfAttention", "Attention")) and "output" not in name
        if isinstance(module, nn.Dropout) and not of_attention:
            module.p = 0.0
    for module in model.backbone.modules():
        if hasattr(module, "out_drop"):
            module.out_drop = nn.Identity()
    assert not torch.equal(*_twice(model))


def test_nothing_changes_unless_it_is_asked_for() -> None:
    model = tiny_model("bert")
    before = [m.p for m in model.modules() if isinstance(m, nn.Dropout)]
    prepare_model(model, Settings())
    assert [m.p for m in model.modules() if isinstance(m, nn.Dropout)] == before
    assert all(p.requires_grad for p in model.parameters())


@pytest.mark.parametrize("family", FAMILIES)
def test_frozen_embeddings_leave_the_dictionary_free(family: str) -> None:
    model = tiny_model(family)
    prepare_model(model, Settings(freeze_embeddings=True))
    frozen = [name for name, p in model.named_parameters() if not p.requires_grad]
    assert len(frozen) == 1
    assert model.get_parameter(frozen[0]) is model.get_input_embeddings().weight


def test_a_frozen_decoder_leaves_its_transform_free() -> None:
    model = tiny_model("bert")
    prepare_model(model, Settings(freeze_decoder=True))
    frozen = [name for name, p in model.named_parameters() if not p.requires_grad]
    assert frozen == ["lexical.weight"]


def test_word_dropout_hides_words_from_the_head_and_from_nothing_else() -> None:
    model = tiny_model("bert")
    prepare_model(model, Settings(dropout=0.0, word_dropout=0.5))
    encoded = model.encode(TEXTS[:4]).model_inputs()
    model.train()
    torch.manual_seed(0)
    one, other = (model.classify(**encoded) for _ in range(2))
    assert torch.equal(one.open_words.value, other.open_words.value)
    assert not torch.equal(one.logits, other.logits)
    model.eval()
    one, other = (model.classify(**encoded) for _ in range(2))
    assert torch.equal(one.logits, other.logits)
