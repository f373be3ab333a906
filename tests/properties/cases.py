"""Random lexical layers, heads and batches for the invariants."""

from __future__ import annotations

import torch
from hypothesis import strategies as st
from torch import Tensor

from lexical_sae.model.config import LexicalSAEConfig
from lexical_sae.model.head_choice import head_of
from lexical_sae.model.heads import Head
from lexical_sae.model.lexical_layer import LexicalLayer
from lexical_sae.model.state import CircuitState


class Case:
    """A layer and head with a batch; no dataclass, so that a failure prints the line below."""

    def __init__(
        self, layer: LexicalLayer, head: Head, h: Tensor, mask: Tensor, tagging: bool
    ) -> None:
        self.layer, self.head, self.tagging = layer, head, tagging
        self.h, self.mask = h, mask  # [B, L, H], [B, L]

    def __repr__(self) -> str:
        layer, shape = self.layer, tuple(self.h.shape)
        return (
            f"Case(h={shape}, words={layer.keep.numel()}, gate={layer.gate}, "
            f"window={layer.window}, saturation={layer.saturation}, pooling={layer.pooling}, "
            f"topk={layer.topk}, training={layer.training}, head={self.head}, "
            f"senses={layer.senses and layer.senses.coordinates().tolist()}, "
            f"tagging={self.tagging}, dtype={self.h.dtype})"
        )

    def state(self, h: Tensor | None = None, mask: Tensor | None = None) -> CircuitState:
        run = self.layer.positions if self.tagging else self.layer.documents
        open_words = run(self.h if h is None else h, self.mask if mask is None else mask)
        logits = self.head(open_words).view(*open_words.shape, -1)
        return CircuitState(logits, open_words, self.head)


@st.composite
def cases(
    draw: st.DrawFn,
    dtype: torch.dtype = torch.float64,
    training: bool | None = False,
    topk: bool = True,
    senses: bool | None = None,
) -> Case:
    """Any head, gate, pooling and task, with or without senses; empty texts and texts without open
    words included."""
    batch, length = draw(st.integers(1, 5)), draw(st.integers(1, 9))
    words, size = draw(st.integers(2, 40)), draw(st.sampled_from([1, 2, 5, 12, 33, 64]))
    most = 0 if senses is False else min(words, 4)
    expanded = draw(st.lists(st.integers(0, words - 1), unique=True, max_size=most))
    if senses and not expanded:
        expanded = [words - 1]
    several = draw(st.integers(2, 4)) if expanded else 1
    coordinates = words + len(expanded) * (several - 1)
    is_training = draw(st.booleans()) if training is None else training
    head_kind = draw(st.sampled_from(["mlp", "linear", "bcos"]))
    config = LexicalSAEConfig(
        labels=[str(c) for c in range(draw(st.integers(2, 5)))],
        gate=draw(st.sampled_from(["shift", "jump"])),
        window=draw(st.sampled_from(["rectangle", "sigmoid"])),
        window_width=draw(st.sampled_from([0.1, 1.0])),
        saturation=draw(st.sampled_from(["none", "log1p"])),
        pooling=draw(st.sampled_from(["max", "attention"])),
        head=head_kind,
        head_width=draw(st.integers(1, 8)),
        hidden_bias=draw(st.booleans()) and head_kind != "bcos",
        head_depth=draw(st.integers(2, 4)) if head_kind == "bcos" else 2,
        topk_per_position=draw(st.sampled_from([0, 0, 1, 3])) if topk else 0,
        dictionary_size=coordinates,
        expanded_words=expanded,
        senses=several,
    )
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=dtype)

    layer = LexicalLayer(config, size).to(dtype).train(is_training)
    head = head_of(config).to(dtype)
    with torch.no_grad():
        for parameter in [*layer.parameters(), *head.parameters()]:
            parameter.copy_(normal(*parameter.shape))
        # from nothing open to everything open
        height = draw(st.sampled_from([0.0, 0.5, 2.0, 100.0]))
        layer.threshold.copy_(normal(coordinates).abs() * height)
        layer.spread.fill_(float(size) ** 0.5)
        layer.keep.copy_(torch.rand(coordinates, generator=generator) > 0.1)
    # positions that nearly tie, as repeated words do: which one wins must not hang on rounding
    closeness = draw(st.sampled_from([1.0, 1.0, 1e-5, 1e-7]))
    h = normal(batch, 1, size) + closeness * normal(batch, length, size)
    mask = torch.rand(batch, length, generator=generator) > draw(st.sampled_from([0.0, 0.3, 1.0]))
    return Case(layer, head, h, mask, draw(st.booleans()))
