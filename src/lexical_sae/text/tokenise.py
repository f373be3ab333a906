"""Texts to token ids, with the characters and the input word behind every token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lexical_sae.text.encodable import check_encodable
from lexical_sae.text.unread import without_unread

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True, eq=False)
class Encoded:
    """A padded batch. `input_ids` and `attention_mask` go into the model as they are."""

    texts: tuple[str, ...]
    input_ids: Tensor  # [B, L]
    attention_mask: Tensor  # [B, L]
    offsets: tuple[tuple[tuple[int, int], ...], ...]  # [B][L] characters of each token
    word_ids: tuple[tuple[int | None, ...], ...]  # [B][L] input word of each token, None: none
    truncated: tuple[bool, ...]  # [B] whether the text was longer than the limit
    unread: tuple[tuple[tuple[int, int], ...], ...]  # [B] characters of the words not read

    def model_inputs(self) -> dict[str, Tensor]:
        return {"input_ids": self.input_ids, "attention_mask": self.attention_mask}


def load_tokenizer(folder: str | Path) -> PreTrainedTokenizerBase:
    """A fast tokenizer from a folder or a hub name, checked not to be an empty shell."""
    from transformers import AutoTokenizer

    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(str(folder))
    except (OSError, ValueError, ImportError) as error:
        first_line = str(error).strip().splitlines()[0] if str(error).strip() else repr(error)
        raise ValueError(
            f"No tokenizer could be loaded from {folder!s} ({first_line}); expected a folder or "
            "hub name with tokenizer.json or the tokenizer's vocabulary files."
        ) from error
    return check_tokenizer(tokenizer)


def check_tokenizer(tokenizer: PreTrainedTokenizerBase) -> PreTrainedTokenizerBase:
    if not getattr(tokenizer, "is_fast", False):
        raise ValueError(
            f"{type(tokenizer).__name__} is a slow tokenizer without character offsets; "
            "explanations need a fast one (a tokenizer.json)."
        )
    if tokenizer.pad_token_id is None:
        raise ValueError("The tokenizer has no padding token, which batches of texts need.")
    special = len(set(tokenizer.all_special_ids))
    if len(tokenizer) <= special:
        raise ValueError(
            f"The tokenizer has {len(tokenizer)} tokens, of which {special} are special: its "
            "vocabulary was not found; check that the folder holds tokenizer.json or vocab files."
        )
    return tokenizer


def check_texts(texts: Sequence[str]) -> None:
    """Refuse what is not a list of at least one string that can be written in UTF-8."""
    if isinstance(texts, str):
        raise ValueError("texts is one string; expected a list of strings, e.g. [text].")
    if len(texts) == 0:
        raise ValueError("texts is empty; expected at least one string.")
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(f"texts[{index}] is {type(text).__name__}; expected a string.")
        check_encodable(text, f"texts[{index}]")


def check_not_blank(texts: Sequence[str]) -> None:
    """Refuse texts of nothing but spaces: there is nothing to decide about."""
    for index, text in enumerate(texts):
        if not text.strip():
            raise ValueError(f"texts[{index}] is {text!r}; expected a text that is not empty.")


def structural_ids(tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """Ids of tokens that stand for no word of the input.

    The unknown token is not among them: it stands where a real, if unknown, word is.
    """
    declared = set(tokenizer.all_special_ids) - {tokenizer.unk_token_id}
    probe: Any = tokenizer("a", return_special_tokens_mask=True)
    marks = zip(probe["input_ids"], probe["special_tokens_mask"], strict=True)
    return sorted(declared | {token for token, special in marks if special})


def token_ids(
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str],
    max_tokens: int | None,
    structural: Sequence[int],
) -> list[list[int]]:
    """The ids of `encode` alone, without padding: what training reads, several times as fast."""
    check_texts(texts)
    found: Any = tokenizer(
        list(texts),
        truncation=max_tokens is not None,
        max_length=max_tokens,
        verbose=False,
        return_attention_mask=False,
        return_special_tokens_mask=True,
        split_special_tokens=True,
    )
    unknown, marks = tokenizer.unk_token_id, set(structural)
    if unknown is None:
        return [list(row) for row in found["input_ids"]]
    return [
        [
            unknown if token in marks and not own else token
            for token, own in zip(row, mask, strict=True)
        ]
        for row, mask in zip(found["input_ids"], found["special_tokens_mask"], strict=True)
    ]


def encode(
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str],
    max_tokens: int | None,
    structural: Sequence[int],
    device: Any = "cpu",
    unread: Sequence[str] = (),
) -> Encoded:
    """Tokenise raw texts; `structural` are the tokenizer's `structural_ids`. Without `max_tokens`
    nothing is cut: what is longer than a backbone reads is for `model.windows`. Words of `unread`
    are taken out first; characters are those of the texts as they were given.

    A special token spelled out in a text ("[MASK]") is read as letters: what a user types must not
    steer the model's own markers.
    """
    import torch

    check_texts(texts)
    least = 1 + tokenizer.num_special_tokens_to_add()
    if max_tokens is not None and max_tokens < least:
        raise ValueError(f"max_tokens is {max_tokens}; expected at least {least}.")
    left = [without_unread(text, unread) for text in texts]
    batch: Any = tokenizer(
        [one.text for one in left],
        padding=True,
        truncation=max_tokens is not None,
        max_length=max_tokens,
        verbose=False,  # it would warn of texts that are longer than the backbone reads
        return_offsets_mapping=True,
        return_special_tokens_mask=True,
        return_tensors="pt",
        split_special_tokens=True,
    )
    # Unigram vocabularies hold "<s>" and the like as ordinary pieces, so spelled out they are found
    # in spite of split_special_tokens; they become the unknown word.
    typed = torch.isin(batch["input_ids"], torch.tensor(structural))
    typed &= batch["special_tokens_mask"] == 0
    if tokenizer.unk_token_id is not None:
        batch["input_ids"][typed] = tokenizer.unk_token_id
    rows = range(len(texts))
    return Encoded(
        texts=tuple(texts),
        input_ids=batch["input_ids"].to(device),
        attention_mask=batch["attention_mask"].to(device),
        offsets=tuple(
            tuple(one.in_whole(int(a), int(z)) for a, z in row)
            for one, row in zip(left, batch["offset_mapping"].tolist(), strict=True)
        ),
        word_ids=tuple(tuple(batch.word_ids(row)) for row in rows),
        truncated=tuple(bool(batch.encodings[row].overflowing) for row in rows),
        unread=tuple(one.gone for one in left),
    )
