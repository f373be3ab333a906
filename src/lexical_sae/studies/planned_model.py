"""A model that holds no weights: to count its parameters and what a training step would take."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch._subclasses.fake_tensor import FakeTensorMode
from transformers import (
    AutoConfig,
    PretrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.initialization import no_init_weights

from lexical_sae.model.backbone import WHEEL_PREFIX, length_limit
from lexical_sae.model.config import LexicalSAEConfig
from lexical_sae.model.dense_twin import DenseTwin, DenseTwinConfig
from lexical_sae.model.dictionary import build_dictionary, words_of_texts
from lexical_sae.model.lexical_sae import LexicalSAE
from lexical_sae.model.loading import quiet
from lexical_sae.model.memory import estimate_twin_memory
from lexical_sae.studies.published_backbone import published_config
from lexical_sae.text.dataset import TextDataset
from lexical_sae.text.tokenise import check_tokenizer, load_tokenizer, structural_ids
from lexical_sae.text.wheels import cached_known, known_wheel
from lexical_sae.training.batch_size import LARGEST, choose_batch_size, free_memory
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
    memory: int  # bytes of a training step
    by_config: bool = False  # without its tokenizer, from the published config alone


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


def plan_run(config: RunConfig, folder: Path | None, train: TextDataset | None) -> Planned | None:
    """From the backbone's config and tokenizer, and from the texts where they are at hand. Without
    a folder from its published config: the dictionary is then the whole vocabulary at most. None if
    nobody knows the backbone."""
    settings = config.settings
    with quiet(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        backbone = (
            published_config(config.backbone)
            if folder is None
            else AutoConfig.from_pretrained(folder)
        )
        if backbone is None:
            return None
        tokenizer = None if folder is None else check_tokenizer(load_tokenizer(folder))
        kind = _kind(backbone)
        if config.dense_twin:
            twin = _twin_without_weights(backbone, kind, train)
            length = _length(twin.backbone, tokenizer, config, train)
            size = settings.batch_size or LARGEST
            memory = estimate_twin_memory(twin, size, length)
            return Planned(_parameters(twin), length, size, memory.total, folder is None)
        model = _without_weights(config, backbone, kind, tokenizer, train)
        length = _length(model.backbone, tokenizer, config, train)
        opened = settings.start_words or 4 * settings.target_words
        size = settings.batch_size or choose_batch_size(model, length, opened, free_memory())
        memory = model.memory_estimate(size, length, training=True, open_words=opened)
    return Planned(_parameters(model), length, size, memory.total, folder is None)


def _kind(backbone: PretrainedConfig) -> str:
    named = [name for name in backbone.architectures or () if name.endswith("ForMaskedLM")]
    return "masked_lm" if named else "encoder"


def _length(
    backbone: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase | None,
    config: RunConfig,
    train: TextDataset | None,
) -> int:
    """That which training would choose, as far as it can be known."""
    if config.settings.max_length is not None:
        return config.settings.max_length
    longest = length_limit(backbone, tokenizer)
    if tokenizer is None or train is None:
        return longest
    encoded = encode_dataset(tokenizer, train.head(SAMPLE), longest, structural_ids(tokenizer))
    return choose_max_length(encoded, longest)


def _parameters(model: PreTrainedModel) -> int:
    return sum(p.numel() for p in model.parameters())


def _labels(train: TextDataset | None) -> dict[str, Any]:
    if train is None:
        return {"labels": ["0", "1"], "task": "classification"}
    return {"labels": train.label_names, "task": train.task}


def _twin_without_weights(
    backbone: PretrainedConfig, kind: str, train: TextDataset | None
) -> DenseTwin:
    shape = DenseTwinConfig(**_labels(train), backbone_kind=kind, backbone=backbone.to_dict())
    with FakeTensorMode(), no_init_weights():
        return DenseTwin(shape)


def _without_weights(
    config: RunConfig,
    backbone: PretrainedConfig,
    kind: str,
    tokenizer: PreTrainedTokenizerBase | None,
    train: TextDataset | None,
) -> LexicalSAE:
    options = config.settings.model.model_dump()
    size = backbone.vocab_size
    if tokenizer is not None:
        dictionary = build_dictionary(tokenizer, options["dictionary"], backbone.vocab_size)
        if options["dictionary"] == "texts" and train is not None:
            dictionary = words_of_texts(tokenizer, dictionary, plain_texts(train))
        size = len(dictionary)
    shape = LexicalSAEConfig(
        **_labels(train),
        **options,
        dictionary_size=size,
        backbone_kind=kind,
        backbone=backbone.to_dict(),
    )
    with FakeTensorMode(), no_init_weights():
        return LexicalSAE(shape)
