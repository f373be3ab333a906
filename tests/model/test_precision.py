"""Precision: the backbone may run in half precision, what is explained stays in fp32 or fp64."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from lexical_sae.attribution.contributions import compute_attribution_tensor
from lexical_sae.attribution.verify import verify_sum
from lexical_sae.model.lexical_sae import LexicalSAE
from tests.tiny import TEXTS, tiny_model, tiny_tokenizer


@pytest.mark.parametrize("task", ["classify", "tag"])
def test_autocast_reaches_the_backbone_only(task: str) -> None:
    """Attribution in bf16 was off by 0.01 on average in an earlier system."""
    model = tiny_model("bert")
    with torch.no_grad():
        model.head.W1.mul_(50)  # bf16 errors are then far above the tolerance
    inputs = model.encode(TEXTS[:8]).model_inputs()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        state = getattr(model, task)(**inputs)
        inside = compute_attribution_tensor(state)
        assert verify_sum(state).ok
        halved = state.with_open_words(state.open_words.scaled(torch.ones(len(inside)) / 2))
    assert state.logits.dtype == state.open_words.value.dtype == torch.float32
    assert torch.equal(inside, compute_attribution_tensor(state))
    torch.testing.assert_close(halved.logits * 2, state.logits)  # no hidden bias, b2 is 0


def test_half_precision_throughout_is_refused() -> None:
    model = tiny_model("bert").bfloat16()
    with pytest.raises(ValueError, match=r"The lexical layer is in torch\.bfloat16"):
        model.classify(**model.encode(TEXTS[:2]).model_inputs())


def test_hidden_states_that_are_not_numbers_are_refused() -> None:
    """Compared with a threshold, NaN would quietly mean that nothing is open."""
    model = tiny_model("bert")
    with torch.no_grad():
        model.backbone.get_input_embeddings().weight.fill_(float("nan"))
    with pytest.raises(ValueError, match="hidden states contain NaN or infinity"):
        model.classify(**model.encode(TEXTS[:2]).model_inputs())


def test_a_model_loaded_in_half_precision_explains_in_fp32(tmp_path) -> None:
    tiny_model("bert").save_pretrained(tmp_path)
    model = LexicalSAE.from_pretrained(tmp_path, dtype=torch.bfloat16)
    assert next(model.backbone.parameters()).dtype == torch.bfloat16
    assert {p.dtype for p in [*model.lexical.parameters(), *model.head.parameters()]} == {
        torch.float32
    }
    state = model.classify(**model.encode(TEXTS[:8]).model_inputs())
    assert state.logits.dtype == torch.float32
    assert verify_sum(state).ok


@pytest.mark.parametrize("task", ["documents", "positions"])
@pytest.mark.parametrize("pooling", ["max", "attention"])
def test_gradcheck_from_states_to_logits(task: str, pooling: str) -> None:
    """Finite differences in fp64, through selection, gate, pooling and head."""
    model = tiny_model("bert", pooling=pooling, open_words=6).double()
    layer, head = model.lexical, model.head
    torch.manual_seed(0)
    h = torch.randn(2, 3, layer.weight.shape[1], dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([[True, True, False], [True, False, True]])
    with torch.no_grad():
        layer.threshold.fill_(float((h @ layer.weight.T + layer.bias).quantile(0.8)))
    names = ["bias", "threshold"] + (["attention"] if pooling == "attention" else [])
    parameters = {f"lexical.{name}": getattr(layer, name) for name in names}
    parameters |= {f"head.{name}": p for name, p in head.named_parameters() if name != "W1"}

    def run(states: Tensor, *values: Tensor) -> Tensor:
        out: Tensor = head(getattr(layer, task)(states, mask))
        return out

    assert len(getattr(layer, task)(h, mask)) > 0
    assert torch.autograd.gradcheck(run, (h, *parameters.values()))


def test_a_tokenizer_without_vocabulary_is_refused() -> None:
    """The trap: a tokenizer class that silently ignores its vocabulary file."""
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    from lexical_sae.text.tokenise import check_tokenizer

    assert check_tokenizer(tiny_tokenizer("bpe")) is tiny_tokenizer("bpe")
    core = Tokenizer(models.WordPiece({"[UNK]": 0}, unk_token="[UNK]"))
    empty = PreTrainedTokenizerFast(tokenizer_object=core, unk_token="[UNK]", pad_token="[UNK]")
    with pytest.raises(ValueError, match="its vocabulary was not found"):
        check_tokenizer(empty)
    unpadded = PreTrainedTokenizerFast(tokenizer_object=core, unk_token="[UNK]")
    with pytest.raises(ValueError, match="no padding token"):
        check_tokenizer(unpadded)
