"""Texts longer than a backbone reads: overlapping windows, pooled as if they were one sequence.

Every token belongs to the one window in which it has the most context; only there may it open
words. A text's logits are pooled by max over the tokens of all its windows, the gate comes after,
and positions count in the whole text. So the sparse vector, the sum and the characters behind every
word are those of the whole text; only the backbone's view ends at a window's edge.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from lexical_sae.model.open_words import OpenWords, one_source_each
from lexical_sae.model.pooling import largest_of_each
from lexical_sae.model.state import CircuitState
from lexical_sae.text.alignment import special_frame
from lexical_sae.text.windows import best_window, window_starts

if TYPE_CHECKING:
    from lexical_sae.model.config import LexicalSAEConfig
    from lexical_sae.model.lexical_sae import LexicalSAE

WINDOWS_AT_ONCE = 16
"""Windows that go through the backbone together; a text of any length takes no more memory."""


@dataclass(frozen=True, eq=False)
class DocumentWindow:
    """A stretch of one row of a padded batch, as a backbone reads it.

    Token `place` of the window stands at `place + shift` in its row.
    """

    row: int
    shift: int
    input_ids: Tensor  # [max_tokens], special tokens included
    owned: Tensor  # [max_tokens] true at the tokens that count here and in no other window


def is_long(config: LexicalSAEConfig, input_ids: Tensor) -> bool:
    """Whether a batch is to be read in windows."""
    return config.windows and input_ids.shape[1] > config.max_tokens


def refuse_long(config: LexicalSAEConfig, input_ids: Tensor) -> None:
    """Where hidden states are wanted a sequence has to fit into one window."""
    if is_long(config, input_ids):
        raise ValueError(
            f"The texts have up to {input_ids.shape[1]} tokens and one window {config.max_tokens}; "
            "long texts can be classified only: call classify, or encode with max_tokens="
            f"{config.max_tokens}, which cuts them."
        )


def document_windows(
    input_ids: Tensor, real: Sequence[int], row: int, frame: tuple[list[int], list[int]], size: int
) -> Iterator[DocumentWindow]:
    """The windows of `size` tokens over one row [L]; `real` are the positions of its tokens, the
    special ones of `frame` included."""
    before, after = (torch.tensor(ids, dtype=torch.long, device=input_ids.device) for ids in frame)
    room = size - len(before) - len(after)
    first = real[0] + len(before)  # position of the first word's token
    total = len(real) - len(before) - len(after)
    starts = window_starts(total, room)
    owner = torch.tensor([best_window(p, starts, room, total)[0] for p in range(total)])
    for number, start in enumerate(starts):
        words = slice(first + start, first + start + room)
        owned = torch.zeros(size, dtype=torch.bool)
        owned[len(before) : len(before) + room] = owner[start : start + room] == number
        ids = torch.cat([before, input_ids[words], after])
        yield DocumentWindow(row, first + start - len(before), ids, owned.to(ids.device))


def classify_windows(
    model: LexicalSAE, input_ids: Tensor, attention_mask: Tensor, at_once: int = WINDOWS_AT_ONCE
) -> CircuitState:
    """`classify` for texts of any length; input_ids, attention_mask [B, L] of the whole texts.

    Those that fit into one window are read together, as they always are.
    """
    size, real = model.config.max_tokens, attention_mask.bool()
    # over whole texts: whether a text has content words is not for one window to say
    mask = model.document_mask(input_ids, attention_mask)
    long = real.sum(1) > size  # [B]
    found = [_short_texts(model, input_ids, mask, real, (~long).nonzero()[:, 0])]
    windows = _long_texts(model, input_ids, real, long.nonzero()[:, 0].tolist())
    best: OpenWords | None = None
    group: list[DocumentWindow] = []
    for window in windows:
        group.append(window)
        if len(group) == at_once:
            best, group = _with_windows(model, best, group, mask), []
    if group:
        best = _with_windows(model, best, group, mask)
    found += [] if best is None else [best]
    open_words = _largest([part for part in found if part is not None])
    return CircuitState(model.head(open_words), open_words, model.head)


def _long_texts(
    model: LexicalSAE, input_ids: Tensor, real: Tensor, rows: Sequence[int]
) -> Iterator[DocumentWindow]:
    assert model.tokenizer is not None
    frame = special_frame(model.tokenizer)
    for row in rows:
        tokens = real[row].nonzero()[:, 0].tolist()
        yield from document_windows(input_ids[row], tokens, row, frame, model.config.max_tokens)


def _short_texts(
    model: LexicalSAE, input_ids: Tensor, mask: Tensor, real: Tensor, rows: Tensor
) -> OpenWords | None:
    """The open words of the texts that fit into one window, without the padding of the others."""
    if not len(rows):
        return None
    used = real[rows].any(0).nonzero()[:, 0]
    first, last = (int(used[0]), int(used[-1])) if len(used) else (0, 0)
    columns = slice(first, last + 1)
    ids, attention = input_ids[rows, columns], real[rows, columns].to(input_ids.dtype)
    opened = model.lexical.documents(model.hidden_states(ids, attention), mask[rows, columns])
    shift = torch.full_like(rows, first)
    return _in_texts(opened, rows, shift, len(input_ids))


def _with_windows(
    model: LexicalSAE, best: OpenWords | None, group: Sequence[DocumentWindow], mask: Tensor
) -> OpenWords:
    """What is open so far, with some more windows."""
    ids = torch.stack([window.input_ids for window in group])  # [W, size]
    rows = torch.tensor([window.row for window in group], device=ids.device)
    shift = torch.tensor([window.shift for window in group], device=ids.device)
    place = shift[:, None] + torch.arange(ids.shape[1], device=ids.device)  # [W, size] in the row
    inside = place.clamp(0, mask.shape[1] - 1)  # a window's special tokens may stand outside
    where = torch.stack([window.owned for window in group]) & mask[rows[:, None], inside]
    h = model.hidden_states(ids, torch.ones_like(ids))
    opened = _in_texts(model.lexical.documents(h, where), rows, shift, len(mask))
    return _largest([opened] if best is None else [best, opened])


def _in_texts(opened: OpenWords, rows: Tensor, shift: Tensor, batch: int) -> OpenWords:
    """Rows and positions of parts of texts as those of the texts; a text may have several."""
    sources = opened.sources
    position = sources.position + shift[opened.row[sources.pair]]
    return replace(
        opened,
        row=rows[opened.row],
        sources=replace(sources, position=position),
        shape=(batch,),
    )


def _largest(parts: Sequence[OpenWords]) -> OpenWords:
    """Of each text and word the pair with the largest logit, and of equal ones the first in the
    text: what pooling the whole text at once would have chosen. `parts` in the order of the text.
    """
    size = parts[0].dictionary_size
    row, word, value = (
        torch.cat([getattr(part, name) for part in parts]) for name in ("row", "word", "value")
    )
    logit, position = (
        torch.cat([getattr(part.sources, name) for part in parts]) for name in ("logit", "position")
    )
    best = largest_of_each(row * size + word, logit)
    return one_source_each(
        *(row[best], word[best], value[best], logit[best], position[best]),
        shape=parts[0].shape,
        dictionary_size=size,
    )
