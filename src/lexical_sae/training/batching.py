"""Batches of texts of like length, padded no further than their longest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset, Sampler

from lexical_sae.text.alignment import Window

# Texts are sorted by length within a window of this many batches: padding is small, and batches
# still differ from epoch to epoch.
WINDOW = 50
IGNORED = -100  # label of a token that is not decided: padding, special, not the first of its word


class EncodedTexts(Dataset[dict[str, Any]]):
    """Token ids and labels, each with its place in the training set."""

    def __init__(self, input_ids: Sequence[Sequence[int]], labels: Sequence[Any]) -> None:
        self.input_ids = input_ids
        self.labels = labels

    def __len__(self) -> int:
        return len(self.input_ids)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"input_ids": self.input_ids[index], "labels": self.labels[index], "index": index}

    def head(self, rows: int) -> EncodedTexts:
        """The first rows."""
        return EncodedTexts(self.input_ids[:rows], self.labels[:rows])

    @property
    def lengths(self) -> list[int]:
        return [len(ids) for ids in self.input_ids]


class EncodedSentences(EncodedTexts):
    """Windows of sentences, with a label for each token: the tag of the word that it starts, or
    IGNORED. `tags` are those of all words of all sentences."""

    def __init__(self, windows: Sequence[Window], tags: Sequence[Sequence[int]]) -> None:
        labels = []
        for window in windows:
            row = [IGNORED] * len(window.input_ids)
            for word, place in zip(window.words, window.first, strict=True):
                row[place] = tags[window.sentence][word]
            labels.append(row)
        super().__init__([window.input_ids for window in windows], labels)
        self.windows = windows
        self.tags = tags

    def head(self, rows: int) -> EncodedSentences:
        return EncodedSentences(self.windows[:rows], self.tags)


class LengthBuckets(Sampler[int]):
    """An order of the texts, new in each epoch, in which every run of `batch` texts (the batch of
    all processes together) is of like length.

    The order depends on seed and epoch only, not on the number of processes: each takes its part
    of every batch, so one process and several see the same batches. Texts that do not fill a
    batch are left out of this epoch, others in the next; with fewer texts than a batch all stay.
    """

    def __init__(self, lengths: Sequence[int], batch: int, seed: int) -> None:
        self.lengths = lengths
        self.batch = batch
        self.seed = seed
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        whole = len(self.lengths) // self.batch * self.batch
        return whole or len(self.lengths)

    def __iter__(self) -> Iterator[int]:
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + self.epoch)
        shuffled = torch.randperm(len(self.lengths), generator=generator)[: len(self)].tolist()
        batches: list[list[int]] = []
        for start in range(0, len(shuffled), self.batch * WINDOW):
            window = sorted(
                shuffled[start : start + self.batch * WINDOW], key=lambda i: self.lengths[i]
            )
            batches += [window[i : i + self.batch] for i in range(0, len(window), self.batch)]
        for place in torch.randperm(len(batches), generator=generator).tolist():
            batch = batches[place]
            # so that each process gets long and short texts alike
            yield from (batch[i] for i in torch.randperm(len(batch), generator=generator).tolist())


class Collate:
    """A list of rows → padded tensors."""

    def __init__(self, pad_id: int) -> None:
        self.pad_id = pad_id

    def __call__(self, rows: Sequence[dict[str, Any]]) -> dict[str, Tensor]:
        length = max(len(row["input_ids"]) for row in rows)
        input_ids = torch.full((len(rows), length), self.pad_id)
        attention_mask = torch.zeros_like(input_ids)
        for place, row in enumerate(rows):
            ids = torch.as_tensor(row["input_ids"])
            input_ids[place, : len(ids)] = ids
            attention_mask[place, : len(ids)] = 1
        return {
            "input_ids": input_ids,
            "attention_mask": attention_mask,
            "labels": _labels([row["labels"] for row in rows], length),
            "index": torch.tensor([row["index"] for row in rows]),
        }


def _labels(labels: Sequence[Any], length: int) -> Tensor:
    """[B] of texts, [B, L] of sentences."""
    if isinstance(labels[0], int):
        return torch.tensor(labels)
    return torch.tensor([[*row, *[IGNORED] * (length - len(row))] for row in labels])
