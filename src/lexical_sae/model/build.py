"""From a backbone to a fresh model: the steps behind `LexicalSAE.from_backbone`."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from transformers import PreTrainedModel

from lexical_sae.model.backbone import (
    LoadedBackbone,
    length_limit,
    load_backbone,
    resolve_name,
    wrap_backbone,
)
from lexical_sae.model.bcos import BcosHead
from lexical_sae.model.calibration import check_open_words, usual_length
from lexical_sae.model.config import LexicalSAEConfig, check_options
from lexical_sae.model.dictionary import build_dictionary, words_of_texts
from lexical_sae.model.function_words import function_token_ids
from lexical_sae.text.tokenise import check_texts, check_tokenizer, load_tokenizer, structural_ids

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from lexical_sae.model.lexical_sae import LexicalSAE


def build_from_backbone(
    cls: type[LexicalSAE],
    backbone: str | Path | PreTrainedModel,
    labels: Sequence[str],
    task: str,
    texts: Sequence[str] | None,
    tokenizer: PreTrainedTokenizerBase | None,
    seed: int,
    open_words: int | None,
    adaptation_seed: int | None,
    options: Mapping[str, Any],
) -> LexicalSAE:
    check_options(options)
    if texts is not None:
        check_texts(texts)
    # checked before any weights are read, so that a typing error costs no time
    settings = LexicalSAEConfig(labels=labels, task=task, **options).to_dict()
    loaded, tokenizer = _load(backbone, tokenizer)
    embedding: Any = loaded.model.get_input_embeddings()
    rows = embedding.weight.shape[0]
    if max(tokenizer.get_vocab().values()) >= rows:
        raise ValueError(
            f"The tokenizer has ids up to {max(tokenizer.get_vocab().values())}, but the backbone "
            f"embeds {rows} tokens; give the tokenizer that belongs to it."
        )
    limit = length_limit(loaded.model, tokenizer)
    if options.get("max_tokens", 0) > limit:
        raise ValueError(
            f"max_tokens is {options['max_tokens']}; this backbone reads at most {limit} tokens."
        )
    dictionary = build_dictionary(tokenizer, settings["dictionary"], loaded.decoder_weight.shape[0])
    if settings["dictionary"] == "texts":
        if texts is None:
            raise ValueError("dictionary='texts' takes its words from texts; give texts=….")
        dictionary = words_of_texts(tokenizer, dictionary, texts)
    config = LexicalSAEConfig(
        labels=labels,
        task=task,
        **{
            **options,
            "max_tokens": min(settings["max_tokens"], limit),
            "dictionary_size": len(dictionary),
            "special_token_ids": structural_ids(tokenizer),
            "function_token_ids": function_token_ids(tokenizer),
            "backbone_kind": loaded.kind,
            "backbone": loaded.model.config.to_dict(),
        },
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = cls(config, loaded, tokenizer, dictionary)
    model.eval()
    if texts is not None:
        check_open_words(model, open_words)  # before minutes of adaptation
        if loaded.kind == "encoder":
            model.adapt(texts, seed=seed if adaptation_seed is None else adaptation_seed)
        model.calibrate(texts, open_words)
        if isinstance(model.head, BcosHead):
            model.head.start_at(usual_length(model, texts))
    elif loaded.kind == "encoder":
        warnings.warn(
            "This backbone has no masked-language-model head, so it got an untrained one; give "
            "texts=… or call model.adapt(texts) before using it.",
            stacklevel=3,
        )
    return model


def _load(
    backbone: str | Path | PreTrainedModel, tokenizer: PreTrainedTokenizerBase | None
) -> tuple[LoadedBackbone, PreTrainedTokenizerBase]:
    if isinstance(backbone, PreTrainedModel):
        if tokenizer is None:
            raise ValueError("A backbone given as an object needs its tokenizer=… as well.")
        return wrap_backbone(copy.deepcopy(backbone)), check_tokenizer(tokenizer)
    name = resolve_name(backbone)
    if tokenizer is None:
        tokenizer = load_tokenizer(name)
    return load_backbone(name), check_tokenizer(tokenizer)
