"""A model that holds no weights: to count its parameters and what a training step would take."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path

from torch._subclasses.fake_tensor import FakeTensorMode
from transformers import AutoConfig, PreTrainedTokenizerBase

from lexical_sae.model.backbone import WHEEL_PREFIX, length_limit
from lexical_sae.model.config import LexicalSAEConfig
from lexical_sae.model.dictionary import build_dictionary, words_of_texts
from lexical_sae.model.lexical_sae import LexicalSAE
from lexical_sae.model.loading import quiet
from lexical_sae.text.dataset import TextDataset
from lexical_sae.text.tokenise import check_tokenizer, load_tokenizer, structural_ids
from lexical_sae.text.wheels import cached_known, known_wheel
from lexical_sae.training.batch_size import choose_batch_size, free_memory
from lexical_sae.training.config import RunConfig
from lexical_sae.training.encoding import choose_max_length, encode_dataset
from lexical_sae.training.fit import plain_texts

SAMPLE = 1000  # texts whose length is looked at


@dataclass(frozen=True)
class Planned:
    """What a run would be. Lengths and batches are those that training would choose."""

    parameters: int
    length: int
    batch_size: int
    memory: int | None  # bytes of a training step; None for a dense twin


def backbone_at_hand(backbone: str) -> Path | None:
    """The folder of a backbone that needs no download, if there is one."""
    if backbone.startswith(WHEEL_PREFIX):
        requirement = backbone[len(WHEEL_PREFIX) :]
        folder, cached = known_wheel(requirement).model_folder, cached_known(requirement)
        return None if folder is None or cached is None else cached / folder
    if Path(backbone).is_dir():
        return Path(backbone)
    from huggingface_hub import try_to_load_from_cache

    try:
        found = try_to_load_from_cache(backbone, "config.json")
    except ValueError:  # no name that the hub could have
        return None
    return Path(found).parent if isinstance(found, str) else None


def plan_run(config: RunConfig, folder: Path, train: TextDataset | None) -> Planned:
    """From the backbone's config and tokenizer, and from the texts where they are at hand."""
    settings, sample = config.settings, None if train is None else train.head(SAMPLE)
    with quiet(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tokenizer = check_tokenizer(load_tokenizer(folder))
        model = _without_weights(config, folder, tokenizer, train)
        longest = length_limit(model.backbone, tokenizer)
        length = settings.max_length or longest
        if settings.max_length is None and sample is not None:
            encoded = encode_dataset(tokenizer, sample, longest, structural_ids(tokenizer))
            length = choose_max_length(encoded, longest)
        if config.dense_twin:
            lexical = sum(
                p.numel() for p in (*model.lexical.parameters(), *model.head.parameters())
            )
            size = settings.batch_size or 32
            return Planned(_parameters(model) - lexical, length, size, None)
        opened = settings.start_words or 4 * settings.target_words
        size = settings.batch_size or choose_batch_size(model, length, opened, free_memory())
        memory = model.memory_estimate(size, length, training=True, open_words=opened)
    return Planned(_parameters(model), length, size, memory.total)


def _parameters(model: LexicalSAE) -> int:
    return sum(p.numel() for p in model.parameters())


def _without_weights(
    config: RunConfig,
    folder: Path,
    tokenizer: PreTrainedTokenizerBase,
    train: TextDataset | None,
) -> LexicalSAE:
    backbone = AutoConfig.from_pretrained(folder)
    options = config.settings.model.model_dump()
    dictionary = build_dictionary(tokenizer, options["dictionary"], backbone.vocab_size)
    if options["dictionary"] == "texts" and train is not None:
        dictionary = words_of_texts(tokenizer, dictionary, plain_texts(train))
    named = [name for name in backbone.architectures or () if name.endswith("ForMaskedLM")]
    shape = LexicalSAEConfig(
        labels=["0", "1"] if train is None else train.label_names,
        task="classification" if train is None else train.task,
        **options,
        dictionary_size=len(dictionary),
        backbone_kind="masked_lm" if named else "encoder",
        backbone=backbone.to_dict(),
    )
    with FakeTensorMode():
        return LexicalSAE(shape)
