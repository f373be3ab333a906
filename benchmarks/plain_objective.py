"""The plain form of a training step: the same mathematics as `Objective`, on dense tensors.

What a careful person writes without index/value pairs: lexical logits [B, L, V], then everything
at [B, V]. Nothing is larger than it needs to be: pooled before the gate, and W_eff of the predicted
class only. Controllers and the weights of the terms are `Objective`'s own, so that the two differ
in the terms alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from lexical_sae.model.heads import MLPHead
from lexical_sae.model.lexical_sae import LexicalSAE
from lexical_sae.model.reference import plain_gate
from lexical_sae.training.decisions import Batch
from lexical_sae.training.losses.reference_words import ReferenceWords
from lexical_sae.training.losses.rows import FLOOR
from lexical_sae.training.objective import Objective


@dataclass(frozen=True, eq=False)
class DenseState:
    """What `CircuitState` holds, dense."""

    logits: Tensor  # [B, C]
    s: Tensor  # [B, V]
    u: Tensor  # [B, width] the head's hidden layer before the ReLU
    position: Tensor  # [B, V] the token position of the maximum
    head: MLPHead

    @property
    def open_words(self) -> DenseState:
        return self

    def counts(self) -> Tensor:
        """[B]"""
        return (self.s > 0).sum(-1)


def plain_classify(model: LexicalSAE, input_ids: Tensor, attention_mask: Tensor) -> DenseState:
    """As most would write it: the decoder, the mask, the maximum."""
    layer = model.lexical
    h = model.hidden_states(input_ids, attention_mask)
    mask = model.document_mask(input_ids, attention_mask)  # [B, L]
    z = F.linear(h, layer.weight, layer.bias)  # [B, L, V]
    z = z.masked_fill(~mask[..., None], torch.finfo(z.dtype).min)
    return _gated(model, *z.max(1))


def tuned_classify(model: LexicalSAE, input_ids: Tensor, attention_mask: Tensor) -> DenseState:
    """The fastest dense way found that works for any mask. A mask that is added needs no copy of
    [B, L, V], neither forward nor backward; and only on a flat product can autograd add it in
    place (on [B, L, V], a view of that product, working in place costs another copy)."""
    layer = model.lexical
    h = model.hidden_states(input_ids, attention_mask)
    mask = model.document_mask(input_ids, attention_mask)
    z = F.linear(h.flatten(0, 1), layer.weight, layer.bias)  # [B · L, V]
    z += torch.where(mask, 0.0, -1e30).to(z.dtype).view(-1, 1)
    return _gated(model, *z.view(*mask.shape, -1).max(1))


def _gated(model: LexicalSAE, pooled: Tensor, position: Tensor) -> DenseState:
    head = model.head
    assert isinstance(head, MLPHead)
    s = plain_gate(model.lexical, pooled) * model.lexical.keep  # [B, V]
    u = _hidden(head, s)
    return DenseState(_output(head, u), s, u, position, head)


class PlainObjective(Objective):
    """`Objective` with its terms written out on dense tensors; for the terms it knows."""

    KNOWN = ("completeness", "separation", "sparsity", "anchor", "content")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        settings = self.settings
        forms = [
            settings.completeness is None or settings.completeness.form == "kl",
            settings.separation is None or settings.separation.form == "cosine",
            settings.sparsity is None or settings.sparsity.form == "target_l1",
        ]
        unknown = sorted(set(self.terms) - set(self.KNOWN))
        if unknown or not all(forms):
            raise ValueError(
                f"The plain form has no {unknown or 'such form of a term'}; write it here first."
            )
        self.inside = _dense(self.reference.words) if self.reference is not None else None

    def _open_now(self, open_words: DenseState) -> float:  # type: ignore[override]
        live = float(open_words.counts().float().mean())
        return min(self.density.open_words or 0.0, live)

    def _terms(  # type: ignore[override]
        self, state: DenseState, batch: Batch, number: float
    ) -> dict[str, Tensor]:
        settings, s, head = self.settings, state.s, state.head
        predicted = state.logits.argmax(-1)  # [B]
        active = (state.u > 0).to(s.dtype)  # [B, width]
        W_eff = (head.W2[predicted] * active) @ head.W1.T  # [B, V]
        A = s * W_eff
        size = A.abs()
        values: dict[str, Tensor] = {}
        if settings.completeness is not None:
            mask = soft_mask(size, s, settings.circuit_fraction, settings.completeness.temperature)
            masked = _output(head, _hidden(head, s * mask)).log_softmax(-1)
            full = state.logits.detach().log_softmax(-1)
            values["completeness"] = F.kl_div(masked, full, reduction="batchmean", log_target=True)
        if settings.separation is not None:
            values["separation"] = self._separation(size, predicted)
            self._move_centroids(size.detach(), predicted)
        if settings.sparsity is not None:
            excess = math.log(max(1.0, number / self.density.aim))
            L1 = s.sum(-1).mean()
            values["sparsity"] = excess * L1 / L1.detach().clamp(min=FLOOR)
        total = size.sum(-1).clamp(min=FLOOR)  # [B]
        if settings.anchor is not None:
            assert self.inside is not None
            inside = self.inside[batch.index]  # [B, V]
            values["anchor"] = (size.masked_fill(inside, 0.0).sum(-1) / total).mean()
        if settings.content is not None:
            assert batch.content_mask is not None
            at_content = batch.content_mask.gather(1, state.position)  # [B, V]
            values["content"] = (size.masked_fill(at_content, 0.0).sum(-1) / total).mean()
        return values

    @torch.no_grad()
    def _move_centroids(self, size: Tensor, predicted: Tensor) -> None:
        """The running mean of each class's mean; a class's first batch is copied."""
        assert self.centroids is not None
        mean, seen = self.centroids.mean, self.centroids.seen
        live, number = _class_means(size, predicted, len(seen))
        keep = torch.where(seen, self.centroids.decay, 0.0).masked_fill(number == 0, 1.0)
        mean.mul_(keep[:, None]).add_((1 - keep)[:, None] * live)
        seen.logical_or_(number > 0)

    def _separation(self, size: Tensor, predicted: Tensor) -> Tensor:
        """Mean cosine of a class in the batch and every other class's centroid."""
        assert self.centroids is not None
        seen = self.centroids.seen
        live, number = _class_means(size, predicted, len(seen))
        cosine = _unit(live) @ _unit(self.centroids.mean).T  # [C, C]
        pair = ((number > 0) & seen)[:, None] & seen & ~torch.eye(len(seen), dtype=torch.bool)
        return torch.where(pair, cosine, 0.0).sum() / pair.sum().clamp(min=1)


def _class_means(size: Tensor, predicted: Tensor, classes: int) -> tuple[Tensor, Tensor]:
    """Mean |A| of each class [C, V] over the texts that have any, and their number [C]."""
    member = F.one_hot(predicted, classes).to(size.dtype) * (size.detach().sum(-1) > 0)[:, None]
    number = member.sum(0)
    return (member.T @ size) / number.clamp(min=1)[:, None], number


def soft_mask(size: Tensor, s: Tensor, fraction: float, temperature: float) -> Tensor:
    """[B, V]: σ((|A| − t)/τ), t midway between the last word of the circuit and the next one."""
    largest = size.detach()
    count = (s > 0).sum(-1)  # [B]
    wanted = torch.ceil(fraction * count.double() - 1e-9).long()
    inside = torch.minimum(wanted, (largest > 0).sum(-1))
    k = min(int(inside.max()) + 1, size.shape[1])
    ranked = F.pad(largest.topk(k, dim=-1).values, (0, 1))  # [B, k + 1]
    last = ranked.gather(1, (inside - 1).clamp(min=0)[:, None])
    following = ranked.gather(1, inside[:, None])
    mean = largest.sum(-1, keepdim=True) / count.clamp(min=1)[:, None]
    width = torch.where(mean > 0, temperature * mean, 1.0)
    return torch.sigmoid((size - (last + following) / 2) / width) * (mean > 0)


def _dense(reference: ReferenceWords) -> Tensor:
    """[texts, V] bool, made before any step is timed."""
    V, keys = reference.dictionary_size, reference.keys
    inside = torch.zeros((int(keys.max()) // V + 1) * V, dtype=torch.bool)
    inside[keys] = True
    return inside.view(-1, V)


def _unit(vectors: Tensor) -> Tensor:
    return vectors / vectors.square().sum(-1, keepdim=True).clamp(min=FLOOR**2).sqrt()


def _hidden(head: MLPHead, s: Tensor) -> Tensor:
    u = s @ head.W1
    return u if head.b1 is None else u + head.b1


def _output(head: MLPHead, u: Tensor) -> Tensor:
    return torch.relu(u) @ head.W2.T + head.b2
