"""Design section 4: nothing of shape [B, L, V], [B, C, V] or [B, hidden, V] is ever held."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

from lexical_sae.attribution.circuits import circuit_mask
from lexical_sae.attribution.contributions import compute_attribution_tensor
from lexical_sae.attribution.verify import verify_sum
from lexical_sae.model.config import LexicalSAEConfig
from lexical_sae.model.head_choice import build_head
from lexical_sae.model.lexical_layer import LexicalLayer
from lexical_sae.model.reference import plain_documents
from lexical_sae.model.state import CircuitState

BATCH, LENGTH, WORDS, SIZE, CLASSES = 8, 64, 20_000, 16, 20


class LargestTensor(TorchDispatchMode):
    """Remembers the size and shape of the largest tensor that any operation returns."""

    def __init__(self) -> None:
        super().__init__()
        self.elements = 0
        self.shape: tuple[int, ...] = ()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for tensor in tree_iter(out):
            if isinstance(tensor, torch.Tensor) and tensor.layout == torch.strided:
                elements = tensor.untyped_storage().nbytes() // tensor.element_size()
                if elements > self.elements:
                    self.elements, self.shape = elements, tuple(tensor.shape)
        return out


def _parts(pooling: str, gate: str) -> tuple[LexicalLayer, Any, torch.Tensor, torch.Tensor]:
    kind, _, window = gate.partition("-")
    config = LexicalSAEConfig(
        labels=[str(c) for c in range(CLASSES)],
        dictionary_size=WORDS,
        pooling=pooling,
        gate=kind,
        window=window or "rectangle",
    )
    torch.manual_seed(0)
    layer = LexicalLayer(config, SIZE)
    head = build_head("mlp", dictionary_size=WORDS, classes=CLASSES, width=64, hidden_bias=False)
    with torch.no_grad():
        layer.reset()
        head.reset()
        layer.weight.mul_(50)
        layer.threshold.fill_(15.0)
        layer.spread.fill_(4.0)
    h = torch.randn(BATCH, LENGTH, SIZE, requires_grad=True)
    return layer, head, h, torch.ones(BATCH, LENGTH, dtype=torch.bool)


@pytest.mark.parametrize("gate", ["shift", "jump-rectangle", "jump-sigmoid"])
@pytest.mark.parametrize("pooling", ["max", "attention"])
@pytest.mark.parametrize("tagging", [False, True])
def test_a_training_step_holds_nothing_dense(tagging: bool, pooling: str, gate: str) -> None:
    layer, head, h, mask = _parts(pooling, gate)
    with LargestTensor() as largest:
        open_words = (layer.positions if tagging else layer.documents)(h, mask)
        logits = head(open_words).view(*open_words.shape, -1)
        state = CircuitState(logits, open_words, head)
        contributions = compute_attribution_tensor(state, row_classes=state.predicted)
        masked = circuit_mask(contributions, open_words, fraction=0.1, soft=True)
        state.with_open_words(open_words.scaled(masked)).logits.square().sum().backward()
        check = verify_sum(state)
    assert check.ok
    per_row = len(open_words) / open_words.rows
    assert 1 < per_row < 0.1 * WORDS
    # nothing larger than a parameter, and so far from BATCH·WORDS·min(LENGTH, CLASSES, width)
    parameter = max(p.numel() for p in [*layer.parameters(), *head.parameters()])
    assert largest.elements <= parameter, largest.shape
    assert 2 * parameter < BATCH * WORDS * min(LENGTH, CLASSES, 64)


def test_the_plain_form_is_caught() -> None:
    layer, _, h, mask = _parts("max", "shift")
    with LargestTensor() as largest:
        plain_documents(layer, h, mask)
    assert largest.elements >= BATCH * LENGTH * WORDS
