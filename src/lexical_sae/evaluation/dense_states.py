"""What the dense twin reads and says of texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from lexical_sae.model.mode import in_mode
from lexical_sae.model.windows import document_windows
from lexical_sae.text.alignment import special_frame
from lexical_sae.text.tokenise import encode

if TYPE_CHECKING:
    from lexical_sae.model.dense_twin import DenseTwin

BATCH = 32


def twin_with_labels(twin: DenseTwin, labels: Sequence[str]) -> DenseTwin:
    """The twin with its outputs in the order of `labels`; one with other labels decides something
    else and is refused."""
    theirs = list(twin.config.labels)
    if sorted(theirs) != sorted(labels):
        raise ValueError(
            f"The dense twin has the labels {', '.join(theirs[:20])}; expected those of the model, "
            f"{', '.join(labels[:20])}: train a twin on the same data."
        )
    if theirs != list(labels):
        place = [theirs.index(name) for name in labels]
        with torch.no_grad():
            twin.head.weight.copy_(twin.head.weight[place].clone())
            twin.head.bias.copy_(twin.head.bias[place].clone())
        twin.config.labels = list(labels)
    return twin


@torch.no_grad()
def dense_states(twin: DenseTwin, texts: Sequence[str]) -> Tensor:
    """[N, H] pooled states in the order of the texts; `twin.head` turns them into logits."""
    order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
    found: list[Tensor] = []
    with in_mode(twin, training=False):
        for start in range(0, len(order), BATCH):
            part = [texts[i] for i in order[start : start + BATCH]]
            config = twin.config
            read = encode(twin.tokenizer, part, config.max_tokens, config.special_token_ids)
            found.append(twin.pooled(read.input_ids, read.attention_mask))
    states = torch.cat(found)
    back = torch.empty(len(order), dtype=torch.long)
    back[torch.tensor(order)] = torch.arange(len(order))
    return states[back]


@torch.no_grad()
def dense_window_logits(twin: DenseTwin, texts: Sequence[str]) -> list[Tensor]:
    """Of each text [W, C], the logits of its windows in their order; one if it fits into one.

    The windows are those in which the lexical model reads.
    """
    config, frame = twin.config, special_frame(twin.tokenizer)
    read = encode(twin.tokenizer, texts, None, config.special_token_ids)
    lengths = read.attention_mask.sum(1).tolist()
    found: list[list[Tensor]] = [[] for _ in texts]
    short = [row for row, length in enumerate(lengths) if length <= config.max_tokens]
    if short:
        states = dense_states(twin, [texts[row] for row in short])
        for row, logits in zip(short, twin.head(states), strict=True):
            found[row].append(logits)
    windows = [
        window
        for row, length in enumerate(lengths)
        if length > config.max_tokens
        for window in document_windows(
            read.input_ids[row],
            read.attention_mask[row].nonzero()[:, 0].tolist(),
            row,
            frame,
            config.max_tokens,
        )
    ]
    with in_mode(twin, training=False):
        for start in range(0, len(windows), BATCH):
            part = windows[start : start + BATCH]
            ids = torch.stack([window.input_ids for window in part])
            for window, logits in zip(part, twin(ids, torch.ones_like(ids)).logits, strict=True):
                found[window.row].append(logits)
    return [torch.stack(logits) for logits in found]
