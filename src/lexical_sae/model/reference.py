"""The plain form of everything: dense, obvious, and what the fast path is tested against.

It holds [B, L, V] and [B, C, V], so it is for tests, benchmarks and reading.
"""

from __future__ import annotations

import torch
from torch import Tensor

from lexical_sae.model.bcos import BcosHead
from lexical_sae.model.gate import apply_gate, nonnegative_threshold
from lexical_sae.model.heads import Head, LinearHead, MLPHead
from lexical_sae.model.lexical_layer import LexicalLayer


def plain_positions(layer: LexicalLayer, h: Tensor, mask: Tensor) -> Tensor:
    """s [B, L, V]: gated lexical logits of every position, 0 where mask [B, L] is false."""
    z = plain_lexical_logits(layer, h)
    s = plain_gate(layer, z)
    if layer.senses is not None:
        chosen, soft = plain_routes(layer, h)
        s = s * chosen + (s.detach() * (soft - soft.detach()) if layer.training else 0.0)
    s = s * layer.keep
    s = s.masked_fill(~mask[..., None], 0.0)
    if layer.topk > 0 and not layer.training:
        kth = s.topk(min(layer.topk, s.shape[-1]), dim=-1).values[..., -1:]
        s = s * (s >= kth)
    return s


def plain_documents(layer: LexicalLayer, h: Tensor, mask: Tensor) -> Tensor:
    """s [B, V]: gated at every position, then pooled over those of each text."""
    s = plain_positions(layer, h, mask)
    if layer.pooling == "max":
        return s.max(1).values
    assert layer.attention is not None
    score = (h @ layer.attention).masked_fill(~mask, -torch.inf)  # [B, L]
    weight = torch.softmax(score, dim=1).masked_fill(~mask, 0.0)  # NaN rows: texts of no words
    return torch.einsum("bl,blv->bv", weight, s)


def plain_documents_pooled_first(layer: LexicalLayer, h: Tensor, mask: Tensor) -> Tensor:
    """The same for max pooling, since the gate is monotone; and the one that says which position's
    logit a threshold's window sees."""
    z = plain_lexical_logits(layer, h)
    lowest = torch.finfo(z.dtype).min
    if layer.senses is None:
        pooled = z.masked_fill(~mask[..., None], lowest).max(1).values  # [B, V]
        return plain_gate(layer, pooled) * layer.keep
    chosen, soft = plain_routes(layer, h)
    pooled, position = z.masked_fill(~(mask[..., None] & chosen), lowest).max(1)
    s = plain_gate(layer, pooled)
    if layer.training:
        value = plain_gate(layer, z).detach().masked_fill(~mask[..., None], 0.0)
        nearest = (soft * value).argmax(1)  # [B, V]: where each sense was nearest to being chosen
        in_reach = pooled > nonnegative_threshold(layer.threshold) - layer.default_reach()
        at = torch.where(in_reach, position, nearest)[:, None]
        share = soft.gather(1, at)[:, 0]
        s = s + value.gather(1, at)[:, 0] * (share - share.detach())
    return s * layer.keep


def plain_lexical_logits(layer: LexicalLayer, h: Tensor) -> Tensor:
    """z [B, L, V]; the senses of a word have the same."""
    z = h @ layer.weight.T + layer.bias
    if layer.senses is None:
        return z
    return z[..., layer.word_of(torch.arange(layer.keep.numel()))]


def plain_routes(layer: LexicalLayer, h: Tensor) -> tuple[Tensor, Tensor]:
    """[B, L, V] each: whether a coordinate gets its word's logit, and the softmax behind that.
    A word without senses always does."""
    senses = layer.senses
    assert senses is not None
    scores = (h @ senses.weight.T + senses.bias).unflatten(-1, (-1, senses.senses))  # [B, L, K, M]
    at = senses.coordinates().flatten()
    chosen = torch.ones(*h.shape[:2], layer.keep.numel(), dtype=torch.bool)
    chosen[..., at] = (scores.argmax(-1, keepdim=True) == torch.arange(senses.senses)).flatten(-2)
    soft = torch.ones(chosen.shape, dtype=h.dtype)
    return chosen, soft.index_copy(-1, at, scores.softmax(-1).flatten(-2))


def plain_gate(layer: LexicalLayer, z: Tensor) -> Tensor:
    theta = nonnegative_threshold(layer.threshold).expand_as(z)
    return apply_gate(
        z,
        theta,
        gate=layer.gate,
        width=layer.width,
        window=layer.window,
        saturation=layer.saturation,
    )


def plain_logits(head: Head, s: Tensor) -> Tensor:
    """s [..., V] → [..., C]."""
    if isinstance(head, LinearHead):
        return s @ head.weight + head.bias
    if isinstance(head, BcosHead):
        return torch.einsum("...cv,...v->...c", plain_effective(head, s)[0], s)
    assert isinstance(head, MLPHead)
    return torch.relu(_hidden(head, s)) @ head.W2.T + head.b2


def plain_effective(head: Head, s: Tensor) -> tuple[Tensor, Tensor]:
    """W_eff [..., C, V] and b_eff [..., C], written out."""
    if isinstance(head, LinearHead):
        shape = (*s.shape[:-1], head.classes)
        return head.weight.T.expand(*shape, -1), head.bias.expand(shape)
    if isinstance(head, BcosHead):
        maps = _bcos_maps(head, s)
        W_eff = maps[0]
        for one in maps[1:]:
            W_eff = one @ W_eff
        return W_eff, s.new_zeros(*s.shape[:-1], head.classes)
    assert isinstance(head, MLPHead)
    active = (_hidden(head, s) > 0).to(s.dtype)  # [..., width]
    W_eff = torch.einsum("ck,...k,vk->...cv", head.W2, active, head.W1)
    hidden = active * (0.0 if head.b1 is None else head.b1)
    return W_eff, hidden @ head.W2.T + head.b2


def _hidden(head: MLPHead, s: Tensor) -> Tensor:
    u = s @ head.W1
    return u if head.b1 is None else u + head.b1


def _bcos_maps(head: BcosHead, s: Tensor) -> list[Tensor]:
    """Each layer's own matrix [..., out, in], for the input that it gets."""
    maps: list[Tensor] = []
    x = s
    counted = torch.ones_like(head.W1[:, 0])  # the senses of a word count as one word together
    counted[head.sense_rows] = 1 / head.senses
    weights = [(head.W1.T, counted), *((weight, 1.0) for weight in head.later)]
    for (weight, share), scale in zip(weights, head.log_scale.exp(), strict=True):
        unit = weight / (weight.square() * share).sum(1, keepdim=True).sqrt()
        dot = torch.einsum("oi,...i->...o", unit, x)
        cosine = dot / x.norm(dim=-1, keepdim=True).clamp(min=1e-30)
        maps.append(scale * cosine.abs()[..., None] * unit)
        x = torch.einsum("...oi,...i->...o", maps[-1], x)
    return maps
