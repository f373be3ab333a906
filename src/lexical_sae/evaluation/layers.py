"""Step 7: what each layer of the backbone adds to the decided logit.

The words that a text opens, the positions that open them and the head's linear region are those of
the whole model. With these fixed, v_k is the logit if the layers after k handed their input on: the
same words, as far open as the states of layer k would open them. v_last is the logit itself, so
bias, v_0 (embeddings alone) − bias, and the differences v_k − v_(k−1) add up to it.

Besides, each layer alone is skipped, and the change of the real logit is taken.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor, nn

from lexical_sae.attribution.contributions import sum_by_row
from lexical_sae.model.gate import apply_gate, nonnegative_threshold
from lexical_sae.model.lexical_sae import LexicalSAE
from lexical_sae.model.mode import in_mode
from lexical_sae.model.pair_logits import gathered_products
from lexical_sae.model.state import CircuitState


@dataclass(frozen=True, eq=False)
class LayerParts:
    """Parts of the decided logit of R decisions: bias, embeddings, then every layer."""

    decided: Tensor  # [R] the class that was decided
    parts: Tensor  # [R, 2 + layers]; their sum is the logit
    residual: Tensor  # [R] |sum − logit|
    skipped: Tensor  # [R, layers] change of the decided logit when the layer alone is skipped
    kept: Tensor  # [R, layers] whether the decision stays without the layer

    def some(self, rows: Tensor) -> LayerParts:
        """Those where the boolean `rows` [R] holds."""
        return LayerParts(**{part.name: getattr(self, part.name)[rows] for part in fields(self)})


def find_layers(backbone: nn.Module) -> list[nn.Module]:
    """The backbone's layers in their order: its list of as many like modules as the config says."""
    count = getattr(getattr(backbone, "config", None), "num_hidden_layers", None)
    for module in backbone.modules():
        if isinstance(module, nn.ModuleList) and len(module) == count:
            return list(module)
    raise ValueError(
        f"{type(backbone).__name__} has no list of {count} layers that could be taken apart."
    )


@contextlib.contextmanager
def skipping(layers: Iterable[nn.Module]) -> Iterator[None]:
    """These layers hand their input on."""

    def hand_on(module: nn.Module, args: Any, kwargs: dict[str, Any], output: Any) -> Any:
        given = args[0] if args else kwargs["hidden_states"]
        return (given, *output[1:]) if isinstance(output, tuple) else given

    handles = [layer.register_forward_hook(hand_on, with_kwargs=True) for layer in layers]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@torch.no_grad()
def layer_parts(
    model: LexicalSAE, input_ids: Tensor, attention_mask: Tensor, where: Tensor | None = None
) -> LayerParts:
    """The decided logit of every text, taken apart by layers; of a tagger that of every token
    where the boolean `where` [B, L] holds."""
    if where is None and model.config.pooling != "max":
        raise ValueError(
            f"Layers can be taken apart for max pooling only; this model has pooling "
            f"{model.config.pooling!r}."
        )
    layers = find_layers(model.backbone)
    with in_mode(model, training=False):
        state = _decisions(model, input_ids, attention_mask, where)
        opened_at = _opened_at(state, input_ids.shape[1], where)
        decided = state.predicted
        logit = state.logits.gather(1, decided[:, None])[:, 0]
        running = [state.b_eff.gather(1, decided[:, None])[:, 0]]
        skipped, kept = [], []
        for k in range(len(layers) + 1):
            with skipping(layers[k:]):
                h = model.hidden_states(input_ids, attention_mask)
            running.append(running[0] + _contributed(model, state, decided, h, opened_at))
        for layer in layers:
            with skipping([layer]):
                other = _decisions(model, input_ids, attention_mask, where)
            skipped.append(other.logits.gather(1, decided[:, None])[:, 0] - logit)
            kept.append(other.predicted == decided)
    values = torch.stack(running, 1)  # [R, 2 + layers]
    parts = torch.cat([values[:, :1], values.diff(dim=1)], 1)
    residual = (parts.sum(1) - logit).abs()
    return LayerParts(decided, parts, residual, torch.stack(skipped, 1), torch.stack(kept, 1))


def _decisions(
    model: LexicalSAE, input_ids: Tensor, attention_mask: Tensor, where: Tensor | None
) -> CircuitState:
    if where is None:
        return model.classify(input_ids, attention_mask)
    return model.tag(input_ids, attention_mask, where).at_rows(where)


def _opened_at(state: CircuitState, length: int, where: Tensor | None) -> Tensor:
    """[P] token of each open pair, counted through the batch."""
    open_words = state.open_words
    if where is None:
        return open_words.row * length + open_words.position
    return where.flatten().nonzero()[:, 0][open_words.row]


def _contributed(
    model: LexicalSAE, state: CircuitState, decided: Tensor, h: Tensor, opened_at: Tensor
) -> Tensor:
    """[R]: Σ W_eff · s over the state's open words, with s as the hidden states h [B, L, H] open
    them at the tokens that opened them in the state."""
    open_words, lexical = state.open_words, model.lexical
    word = lexical.word_of(open_words.word)
    z = gathered_products(h.flatten(0, 1), lexical.weight, opened_at, word)
    s = apply_gate(
        z + lexical.bias[word],
        nonnegative_threshold(lexical.threshold)[open_words.word],
        gate=lexical.gate,
        width=lexical.width,
        window=lexical.window,
        saturation=lexical.saturation,
    )
    weight = state.head.decided_weights(open_words, decided)  # [P]
    return sum_by_row(weight * s, open_words.row, open_words.rows)
