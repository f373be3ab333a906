"""Reference words: which words the untrained model opens for each training text."""

from __future__ import annotations

import torch
from torch import Tensor

from lexical_sae.model.open_words import OpenWords


class ReferenceWords:
    """A set of (text, word), as sorted keys text · V + word: 8 bytes each."""

    def __init__(self, keys: Tensor, dictionary_size: int) -> None:
        self.keys = keys  # [K] int64, ascending, no key twice
        self.dictionary_size = dictionary_size

    def __len__(self) -> int:
        return int(self.keys.numel())

    def contains(self, text_index: Tensor, open_words: OpenWords) -> Tensor:
        """[P] bool; text_index: the text of each row [rows], or of each document of a tagged batch
        [B]. A text that was never added has no reference words."""
        if open_words.dictionary_size != self.dictionary_size:
            raise ValueError(
                f"These reference words are for a dictionary of {self.dictionary_size} words, the "
                f"open words have {open_words.dictionary_size}."
            )
        keys = pair_keys(text_index.to(self.keys.device), open_words)  # [P]
        if len(self) == 0:
            return torch.zeros_like(keys, dtype=torch.bool)
        place = torch.searchsorted(self.keys, keys).clamp(max=len(self) - 1)
        return self.keys[place] == keys

    def to(self, device: torch.device | str) -> ReferenceWords:
        return ReferenceWords(self.keys.to(device), self.dictionary_size)

    def to_tensors(self) -> dict[str, Tensor]:
        return {"keys": self.keys, "dictionary_size": torch.tensor(self.dictionary_size)}

    @classmethod
    def from_tensors(cls, tensors: dict[str, Tensor]) -> ReferenceWords:
        keys = tensors["keys"]
        if keys.dtype != torch.int64 or bool((keys[1:] <= keys[:-1]).any()):
            raise ValueError("keys of reference words must be int64 and strictly ascending.")
        return cls(keys, int(tensors["dictionary_size"]))


class ReferenceWordsBuilder:
    """Collects the batches of a pass of the untrained model, in any order."""

    def __init__(self, dictionary_size: int) -> None:
        self.dictionary_size = dictionary_size
        self._parts: list[Tensor] = []

    @torch.no_grad()
    def add(self, text_index: Tensor, open_words: OpenWords) -> None:
        """text_index as in `ReferenceWords.contains`; a text may come in several rows."""
        if open_words.dictionary_size != self.dictionary_size:
            raise ValueError(
                f"The open words have a dictionary of {open_words.dictionary_size} words; "
                f"expected {self.dictionary_size}."
            )
        keys = pair_keys(text_index.to(open_words.row.device), open_words)
        self._parts.append(torch.unique(keys[open_words.value > 0]).cpu())

    def build(self) -> ReferenceWords:
        keys = torch.cat([torch.empty(0, dtype=torch.int64), *self._parts])
        return ReferenceWords(torch.unique(keys), self.dictionary_size)


def pair_keys(text_index: Tensor, open_words: OpenWords) -> Tensor:
    """[P]: text · V + word of each pair."""
    shape = open_words.shape
    if len(shape) == 2 and text_index.shape == shape[:1]:
        text_index = text_index[:, None].expand(shape)  # one text behind all its positions
    if text_index.numel() != open_words.rows:
        raise ValueError(
            f"text_index has {text_index.numel()} entries; expected one for each of the "
            f"{open_words.rows} rows."
        )
    text = text_index.reshape(-1).long()[open_words.row]  # [P]
    return text * open_words.dictionary_size + open_words.word
