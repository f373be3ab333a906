"""An average of the weights over the last part of a run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping

import torch
from torch import Tensor, nn

_UPDATES = "updates"
_AVERAGE = "average."


class WeightAverage:
    """Exponential moving average of the weights that are trainable at construction.

    A fixed decay of 0.999 remembers 1,000 steps: after a run of 650 half of the average is still
    the initialisation. So the decay is bounded by the length of the run, 1 − 10/steps: the memory
    is at most a tenth of the run, and at its end e⁻¹⁰ of the average is older than the run. What
    remains is the start, where an average that begins at the initial weights would lag: the
    weights of the average are normalised to one over the updates seen so far (as Adam's moments
    are), so that the initial weights never count and the first update replaces them.

    Kept in fp32 at least, since half precision would round the small updates away.
    """

    def __init__(self, model: nn.Module, decay: float, steps: int) -> None:
        self.decay = min(decay, max(0.0, 1 - 10 / max(steps, 1)))
        self.updates = 0
        self._average: dict[str, Tensor] = {}
        for name, p in model.named_parameters():
            if p.requires_grad:
                wide = torch.promote_types(p.dtype, torch.float32)
                self._average[name] = p.detach().to(wide, copy=True)

    @torch.no_grad()
    def update(self, model: nn.Module) -> None:
        """Take in the weights after a step."""
        self.updates += 1
        share = (1 - self.decay) / (1 - self.decay**self.updates)
        for p, average in self._pairs(model):
            average.lerp_(p.to(average), share)

    @contextlib.contextmanager
    def applied(self, model: nn.Module) -> Iterator[None]:
        """The averaged weights in the model for the length of the block; then, also after an
        error, the weights of before, bit by bit."""
        pairs = self._pairs(model)
        before = [p.detach().clone() for p, _ in pairs]
        try:
            with torch.no_grad():
                for p, average in pairs:
                    p.copy_(average)
            yield
        finally:
            with torch.no_grad():
                for (p, _), old in zip(pairs, before, strict=True):
                    p.copy_(old)

    def state_dict(self) -> dict[str, Tensor]:
        """Tensors only, so that it can be saved without pickle; the decay is the caller's."""
        state = {_AVERAGE + name: average.clone() for name, average in self._average.items()}
        return {_UPDATES: torch.tensor(self.updates), **state}

    @torch.no_grad()
    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        expected = {_UPDATES, *(_AVERAGE + name for name in self._average)}
        if set(state) != expected:
            odd = sorted(expected.symmetric_difference(state))
            raise ValueError(
                f"The saved average does not fit this model: {odd[0]} is in only one of the two; "
                "expected the average of a run with the same trainable parameters."
            )
        for name, average in self._average.items():
            saved = state[_AVERAGE + name]
            if saved.shape != average.shape:
                raise ValueError(
                    f"The saved average of {name} has shape {tuple(saved.shape)}; expected "
                    f"{tuple(average.shape)}."
                )
        for name, average in self._average.items():
            average.copy_(state[_AVERAGE + name])
        self.updates = int(state[_UPDATES])

    def _pairs(self, model: nn.Module) -> list[tuple[nn.Parameter, Tensor]]:
        parameters = dict(model.named_parameters())
        missing = [name for name in self._average if name not in parameters]
        if missing:
            raise ValueError(
                f"The model has no parameter {missing[0]}; expected the model that the average "
                "was made for."
            )
        for name in self._average:  # the model may have moved to its device since
            self._average[name] = self._average[name].to(parameters[name].device)
        return [(parameters[name], average) for name, average in self._average.items()]
