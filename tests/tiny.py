"""Builders for tiny backbones and tokenizers: no weights, no files, no hub."""

from __future__ import annotations

import functools
import math
from collections import Counter
from typing import Any

import torch
import transformers
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import AutoModelForMaskedLM, PreTrainedTokenizerFast

from lexical_sae.model.lexical_sae import LexicalSAE

SUBJECTS = ("the film", "this story", "her music", "a small garden", "the old house", "his book")
VERBS = ("is", "was", "seems", "never feels", "often becomes")
QUALITIES = ("lovely", "boring", "very funny", "quite sad", "gorgeous", "slow and dull", "bright")
TEXTS = [f"{s} {v} {q}." for s in SUBJECTS for v in VERBS for q in QUALITIES]

SPECIAL = {
    "wordpiece": ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
    "bpe": ("<pad>", "<unk>", "<s>", "</s>", "<mask>"),
    "unigram": ("<pad>", "<unk>", "<s>", "</s>", "<mask>"),
}
FAMILIES = {  # family: (config class, tokenizer kind)
    "bert": ("BertConfig", "wordpiece"),
    "distilbert": ("DistilBertConfig", "wordpiece"),
    "roberta": ("RobertaConfig", "bpe"),
    "albert": ("AlbertConfig", "unigram"),
    "electra": ("ElectraConfig", "wordpiece"),
    "mpnet": ("MPNetConfig", "wordpiece"),
    "deberta-v2": ("DebertaV2Config", "unigram"),
    "modernbert": ("ModernBertConfig", "bpe"),
}


def _words() -> Counter[str]:
    return Counter(word for text in TEXTS for word in text.replace(".", " .").split())


def _letters() -> list[str]:
    return sorted(set("".join(TEXTS).replace(" ", "")))


def _wordpieces(special: tuple[str, ...]) -> dict[str, int]:
    """Words, letters and continuations. The library's trainer breaks ties in random order, so
    its vocabulary differs from run to run; this one does not."""
    pieces = [*special, *_letters(), *sorted(w for w in _words() if len(w) > 1), "##s", "##ing"]
    pieces += ["##" + letter for letter in _letters() if letter != "s"]
    return {piece: index for index, piece in enumerate(pieces)}


def _unigram_pieces(special: tuple[str, ...]) -> list[tuple[str, float]]:
    """Whole words by frequency, then letters: the trainer prunes so small a corpus to letters."""
    words = _words()
    total = sum(words.values())
    pieces = [(token, 0.0) for token in special]
    pieces += [("▁" + w, math.log(n / total)) for w, n in sorted(words.items()) if w.isalpha()]
    return pieces + [(letter, -12.0) for letter in [*_letters(), "▁", "ing", "ed"]]


@functools.cache
def tiny_tokenizer(kind: str) -> PreTrainedTokenizerFast:
    special = SPECIAL[kind]
    pad, unk, start, end, mask = special
    if kind == "wordpiece":
        core = Tokenizer(models.WordPiece(_wordpieces(special), unk_token=unk))
        core.normalizer = normalizers.BertNormalizer(lowercase=True)
        core.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        core.decoder = decoders.WordPiece()
    elif kind == "bpe":
        core = Tokenizer(models.BPE(unk_token=unk))
        core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        core.decoder = decoders.ByteLevel()
        alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
        trainer = trainers.BpeTrainer(
            vocab_size=480,
            special_tokens=list(special),
            initial_alphabet=alphabet,
            show_progress=False,
        )
        core.train_from_iterator(TEXTS, trainer)
    else:
        core = Tokenizer(models.Unigram(_unigram_pieces(special), unk_id=1))
        core.normalizer = normalizers.NFKC()
        core.pre_tokenizer = pre_tokenizers.Metaspace()
        core.decoder = decoders.Metaspace()
    core.add_special_tokens(list(special))
    ids = [(token, core.token_to_id(token)) for token in (start, end)]
    core.post_processor = processors.TemplateProcessing(
        single=f"{start} $A {end}", special_tokens=ids
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        pad_token=pad,
        unk_token=unk,
        cls_token=start,
        sep_token=end,
        bos_token=start,
        eos_token=end,
        mask_token=mask,
        model_max_length=64,
    )


def tiny_config(family: str) -> Any:
    name, kind = FAMILIES[family]
    tokenizer = tiny_tokenizer(kind)
    settings: dict[str, Any] = {
        "vocab_size": len(tokenizer) + 3,  # decoders are often padded beyond the tokenizer
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 48,
        "max_position_embeddings": 80,
        "pad_token_id": tokenizer.pad_token_id,
    }
    if family == "distilbert":
        settings = {
            "vocab_size": settings["vocab_size"],
            "dim": 32,
            "n_layers": 2,
            "n_heads": 4,
            "hidden_dim": 48,
            "max_position_embeddings": 80,
        }
    if family in ("albert", "electra"):
        settings["embedding_size"] = 16
    if family == "deberta-v2":
        settings |= {"relative_attention": True, "pos_att_type": ["p2c", "c2p"]}
    if family == "modernbert":
        settings |= {
            "cls_token_id": tokenizer.cls_token_id,
            "sep_token_id": tokenizer.sep_token_id,
            "bos_token_id": tokenizer.cls_token_id,
            "eos_token_id": tokenizer.sep_token_id,
        }
    return getattr(transformers, name)(**settings)


def tiny_backbone(family: str, seed: int = 0) -> Any:
    """A masked LM whose logits spread like a trained one's: random ones would all be near 0."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = AutoModelForMaskedLM.from_config(tiny_config(family))
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.dim() > 1:
                    parameter.mul_(8)
    return model.eval()


def tiny_model(
    family: str = "bert", *, open_words: int = 12, seed: int = 0, **options: Any
) -> LexicalSAE:
    """A model with random weights whose gate opens about `open_words` words per text."""
    model = LexicalSAE.from_backbone(
        tiny_backbone(family, seed),
        labels=options.pop("labels", ["negative", "neutral", "positive"]),
        task=options.pop("task", "classification"),
        tokenizer=tiny_tokenizer(FAMILIES[family][1]),
        seed=seed,
        **options,
    )
    model.calibrate(TEXTS[:64], open_words)
    return model
