"""Step 8: a sparse autoencoder fitted after the fact to a dense model's pooled hidden state.

The usual way to get sparse features out of a dense model. What it cannot have is a reconstruction
error of zero: what the features leave out still moves the logits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Kind = Literal["topk", "jumprelu"]
EPOCHS, BATCH, RATE = 60, 256, 1e-3
WINDOW = 0.05  # of the straight-through estimate, relative to the spread of the activations


class SparseAutoencoder(nn.Module):
    """x̂ = D f(E (x − m)) + m with f the k largest activations, or those above a threshold each."""

    mean: Tensor
    scale: Tensor

    def __init__(self, kind: Kind, size: int, latents: int, k: int) -> None:
        super().__init__()
        if not 1 <= k <= latents:
            raise ValueError(f"k is {k}; expected 1 to {latents}, the number of latents.")
        self.kind, self.k = kind, k
        self.encoder = nn.Linear(size, latents)
        self.decoder = nn.Parameter(torch.empty(latents, size))
        self.threshold = nn.Parameter(torch.zeros(latents))
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("scale", torch.ones(()))
        with torch.no_grad():
            self.decoder.copy_(F.normalize(torch.randn(latents, size), dim=1))
            self.encoder.weight.copy_(self.decoder)  # tied at the start
            self.encoder.bias.zero_()

    def features(self, x: Tensor) -> Tensor:
        """[B, latents], mostly zero."""
        z = torch.relu(self.encoder((x - self.mean) / self.scale))
        if self.kind == "topk":
            kept = torch.topk(z, self.k, dim=1)
            return torch.zeros_like(z).scatter(1, kept.indices, kept.values)
        theta = torch.relu(self.threshold)
        return z * self._open(z, theta)

    def _open(self, z: Tensor, theta: Tensor) -> Tensor:
        """1[z > θ], with the gradient of a narrow window around θ."""
        hard = (z > theta).to(z.dtype)
        near = ((z - theta).detach().abs() < WINDOW / 2).to(z.dtype) / WINDOW
        soft = near * (z - theta)
        return hard + (soft - soft.detach())

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """x̂ [B, H] and the features."""
        f = self.features(x)
        return f @ self.decoder * self.scale + self.mean, f


def fit_autoencoder(
    x: Tensor,
    kind: Kind,
    *,
    latents: int,
    k: int,
    epochs: int = EPOCHS,
    seed: int = 0,
) -> SparseAutoencoder:
    """Fitted to the rows of x [N, H], which are those of the training split. A JumpReLU is held at
    k open features by a penalty on their number that grows while there are more."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = SparseAutoencoder(kind, x.shape[1], latents, k)
        model.mean.copy_(x.mean(0))
        model.scale.copy_((x - x.mean(0)).norm(dim=1).mean())
        optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
        pressure = 1e-3
        for _ in range(epochs):
            order = torch.randperm(len(x))
            for start in range(0, len(x), BATCH):
                part = x[order[start : start + BATCH]]
                restored, _f = model(part)
                loss = (((restored - part) / model.scale) ** 2).sum(1).mean()
                if kind == "jumprelu":
                    theta = torch.relu(model.threshold)
                    z = torch.relu(model.encoder((part - model.mean) / model.scale))
                    number = model._open(z, theta).sum(1).mean()
                    loss = loss + pressure * torch.relu(number - k) / k
                    excess = float(number.detach()) / k - 1
                    pressure = min(
                        10.0, max(1e-4, pressure * (1 + 0.05 * max(-1.0, min(1.0, excess))))
                    )
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                with torch.no_grad():
                    model.decoder.copy_(F.normalize(model.decoder, dim=1))
    return model.eval()


@dataclass(frozen=True)
class AutoencoderQuality:
    """What an autoencoder keeps of a dense model, on rows that it was not fitted to."""

    unexplained: float  # share of the variance that is not restored
    dead: float  # share of latents that never open on the training rows
    open_features: float  # mean per text
    loss: float  # cross-entropy when the restored state replaces the real one
    loss_before: float
    agreement: float  # decisions that stay
    accuracy: float  # with the restored state


@torch.no_grad()
def autoencoder_quality(
    model: SparseAutoencoder, head: nn.Module, train: Tensor, test: Tensor, labels: Tensor
) -> AutoencoderQuality:
    """`head` turns pooled states [N, H] into logits, as the dense model does."""
    restored, f = model(test)
    alive = (model.features(train) > 0).any(0)
    before, after = head(test), head(restored)
    variance = ((test - test.mean(0)) ** 2).sum()
    return AutoencoderQuality(
        unexplained=float(((restored - test) ** 2).sum() / variance),
        dead=float((~alive).double().mean()),
        open_features=float((f > 0).double().sum(1).mean()),
        loss=float(F.cross_entropy(after, labels)),
        loss_before=float(F.cross_entropy(before, labels)),
        agreement=float((after.argmax(-1) == before.argmax(-1)).double().mean()),
        accuracy=float((after.argmax(-1) == labels).double().mean()),
    )
