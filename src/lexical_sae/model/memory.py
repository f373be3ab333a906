"""Peak memory of one step, before it is run.

The backbone is run once on fake tensors, which have shapes but no data, while a dispatch mode
counts the bytes that are alive; so any family is covered without a formula of its own. The
lexical layer's size follows from its block sizes and the number of open words.
"""

from __future__ import annotations

import math
import warnings
import weakref
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter
from transformers.initialization import no_init_weights

from lexical_sae.model.backbone import LexicalTransform, backbone_states, rebuild_backbone
from lexical_sae.model.calibration import DEFAULT_OPEN_WORDS
from lexical_sae.model.gate import WINDOW_REACH
from lexical_sae.model.screen import FEWEST_ROWS, low_precision_is_fast
from lexical_sae.model.selection import block_sizes

if TYPE_CHECKING:
    from lexical_sae.model.config import LexicalSAEConfig
    from lexical_sae.model.dense_twin import DenseTwin, DenseTwinConfig
    from lexical_sae.model.lexical_sae import LexicalSAE

ADAM_STATES = 2
# Live bytes are estimated to within 6 %, but glibc's heap holds on to freed blocks: the resident
# set was 1.18 to 1.21 times as large in docs/performance.md. Accelerators pool in other ways.
# At inference, where large buffers come and go, the factor was 1.0 to 1.5.
CPU_FRAGMENTATION = {True: 0.18, False: 0.4}  # training, inference
CPU_WORKSPACE = 24 * 2**20  # buffers of the matrix product


@dataclass(frozen=True)
class MemoryEstimate:
    """Bytes. `total` is the peak of a step, the weights themselves included."""

    weights: int
    gradients: int
    optimizer: int
    activations: int  # most that is alive at once besides weights, gradients and optimizer
    allocator: int  # what the allocator holds beyond live tensors
    total: int

    def to_dict(self) -> dict[str, int]:
        return asdict(self)


class _LiveBytes(TorchDispatchMode):
    """Counts the bytes of storages that operations create, until they are freed."""

    def __init__(self) -> None:
        super().__init__()
        self.live = 0
        self.peak = 0
        self._known: weakref.WeakSet[Any] = weakref.WeakSet()

    def ignore(self, module: nn.Module) -> None:
        for tensor in [*module.parameters(), *module.buffers()]:
            self._known.add(tensor.untyped_storage())

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for tensor in tree_iter(out):
            if isinstance(tensor, torch.Tensor):
                self._count(tensor.untyped_storage())
        return out

    def _count(self, storage: torch.UntypedStorage) -> None:
        if storage in self._known:
            return
        self._known.add(storage)
        size = storage.nbytes()
        self.live += size
        self.peak = max(self.peak, self.live)
        weakref.finalize(storage, self._release, size)

    def _release(self, size: int) -> None:
        self.live -= size


def estimate_memory(
    model: LexicalSAE,
    batch: int,
    length: int,
    training: bool = True,
    open_words: int | None = None,
) -> MemoryEstimate:
    """One step of AdamW on [batch, length] tokens, or one forward pass if not `training`.

    `open_words` is the expected number per text (per token for tagging).
    """
    for name, value in (("batch", batch), ("length", length)):
        if value < 1:
            raise ValueError(f"{name} is {value}; expected at least 1.")
    per_row = open_words or DEFAULT_OPEN_WORDS[model.config.task]
    rows = batch * length if model.config.task == "tagging" else batch
    weights = _bytes([*model.parameters(), *model.buffers()])
    trained = [p for p in model.parameters() if p.requires_grad]
    gradients = _bytes(trained) if training else 0
    widening = model.dtype.itemsize / 4  # the fake backbone is in fp32
    parts = _backbone_bytes(model.config, batch, length, training, head=True)
    states, backward_peak = (int(n * widening) for n in parts)
    pairs = rows * per_row
    if training and model.config.gate == "jump":
        pairs = int(pairs * _window_factor(model))
    lexical = _lexical_bytes(model, batch, length, pairs, training)
    # either the lexical layer on top of all that forward kept, or the backbone's own backward,
    # by when the gradients of head and dictionary are there and counted on their own
    activations = max(states + lexical, backward_peak)
    return _summed(weights, gradients, activations, training, model.device.type == "cpu")


def estimate_twin_memory(model: DenseTwin, batch: int, length: int) -> MemoryEstimate:
    """One step of AdamW of a dense twin: its head is small beside what the backbone keeps."""
    weights = _bytes([*model.parameters(), *model.buffers()])
    gradients = _bytes([p for p in model.parameters() if p.requires_grad])
    activations = max(_backbone_bytes(model.config, batch, length, True, head=False))
    return _summed(weights, gradients, activations, True, model.device.type == "cpu")


def _summed(
    weights: int, gradients: int, activations: int, training: bool, cpu: bool
) -> MemoryEstimate:
    optimizer = ADAM_STATES * gradients
    allocator = 0
    if cpu:
        allocator = CPU_WORKSPACE + int(
            CPU_FRAGMENTATION[training] * (gradients + optimizer + activations)
        )
    total = weights + gradients + optimizer + activations + allocator
    return MemoryEstimate(weights, gradients, optimizer, activations, allocator, total)


def _window_factor(model: LexicalSAE) -> float:
    """How many more pairs the jump gate's window keeps: about three standard deviations out, where
    thresholds lie, the density of logits grows e-fold for every third of one downwards."""
    config = model.config
    return math.exp(3 * config.window_width * WINDOW_REACH[config.window])


def _bytes(tensors: Sequence[torch.Tensor]) -> int:
    return sum(t.numel() * t.element_size() for t in tensors)


def _backbone_bytes(
    config: LexicalSAEConfig | DenseTwinConfig, batch: int, length: int, training: bool, head: bool
) -> tuple[int, int]:
    """What is alive after the forward pass, and at most, without gradients of parameters; `head`
    with the lexical head that an encoder gets."""
    with FakeTensorMode(allow_non_fake_inputs=True), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with no_init_weights():  # some families look at what they drew, and there is nothing
            loaded = rebuild_backbone(config.backbone or {}, config.backbone_kind)
        parts: list[nn.Module] = [loaded.model]
        if head and config.backbone_kind == "encoder":
            parts.append(LexicalTransform(loaded.decoder_weight.shape[1]))
        for part in parts:
            part.train(training)
        counter = _LiveBytes()
        for part in parts:
            counter.ignore(part)
        ids = torch.ones(batch, length, dtype=torch.long)
        with counter, torch.set_grad_enabled(training):
            h = backbone_states(loaded.model, config.backbone_kind, ids, torch.ones_like(ids))
            for part in parts[1:]:
                h = part(h)
            after_forward = counter.live
            if not training:
                return after_forward, counter.peak
            counter.peak = counter.live
            parameters = [p for part in parts for p in part.parameters()]
            for parameter in parameters:
                # gradients are counted by the caller, and each is dropped here once it is there
                parameter.register_post_accumulate_grad_hook(_drop_gradient)
            h.backward(torch.ones_like(h))
        return after_forward, counter.peak


def _drop_gradient(parameter: torch.Tensor) -> None:
    parameter.grad = None


def _lexical_bytes(model: LexicalSAE, batch: int, length: int, pairs: int, training: bool) -> int:
    size = model.lexical.weight.element_size()
    words, hidden = model.lexical.weight.shape
    tokens = batch * length
    row_block, word_block = block_sizes(model.lexical.weight)
    packed = 2 * tokens * hidden * size  # the packed states, and their gradient
    block = min(row_block, tokens) * min(word_block, words) * (size + 1)
    pooled = 0 if model.config.task == "tagging" else 2 * batch * words * size
    if low_precision_is_fast() and tokens >= FEWEST_ROWS:
        block += 2 * (words + tokens) * hidden  # the screen's bfloat16 copies
    indices = 8
    per_pair = 12 * indices + 8 * size  # rows, words, positions, orders; values and gradients
    width = len(model.config.labels) + (
        0
        if model.config.head == "linear"
        else model.config.head_width * (model.config.head_depth - 1)
    )
    rows = tokens if model.config.task == "tagging" else batch
    head = 4 * rows * width * size
    factor = 1 if training else 0.5
    return int(packed * factor) + block + pooled + int(pairs * per_pair * factor) + head
