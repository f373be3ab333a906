"""A model, batches and the objective in its circuit phase, of any size: no files, no hub.

Weights and texts are random, from a fixed seed; thresholds are calibrated as before any training.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from torch import Tensor
from transformers import BertConfig, BertForMaskedLM, PreTrainedTokenizerFast

from lexical_sae.model.lexical_sae import LexicalSAE
from lexical_sae.model.mode import in_mode
from lexical_sae.training.decisions import Batch, texts_batch
from lexical_sae.training.losses.reference_words import ReferenceWords, ReferenceWordsBuilder
from lexical_sae.training.objective import Objective
from lexical_sae.training.preparation import prepare_model
from lexical_sae.training.recipes import DEFAULT
from lexical_sae.training.reference import Reference
from lexical_sae.training.settings import Content, Settings

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
FUNCTION_WORDS = ("the", "of", "and", "is", "to", ",", ".")
BATCHES = 2

AnObjective = TypeVar("AnObjective", bound=Objective)


@dataclass(frozen=True)
class Size:
    """The defaults are what the benchmark measures."""

    batch: int = 32
    length: int = 128
    classes: int = 2
    vocabulary: int = 30522
    hidden: int = 128
    layers: int = 2
    open_words: int = 128  # four times the default recipe's target: the start of the circuit phase


@dataclass(frozen=True, eq=False)
class Step:
    """What one training step reads."""

    input_ids: Tensor  # [B, L]
    attention_mask: Tensor  # [B, L]
    batch: Batch

    def tiny(self) -> Step:
        """Two texts of eight tokens, to make the optimiser allocate its state."""
        assert self.batch.content_mask is not None
        batch = texts_batch(
            self.batch.labels[:2], self.batch.index[:2], self.batch.content_mask[:2, :8]
        )
        return Step(self.input_ids[:2, :8], self.attention_mask[:2, :8], batch)


@dataclass(frozen=True, eq=False)
class Problem:
    model: LexicalSAE
    settings: Settings
    steps: list[Step]
    reference: Reference
    size: Size

    def objective(self, kind: type[AnObjective]) -> AnObjective:
        """At the first step of its circuit phase, with the open words of the calibrated start."""
        made = kind(
            self.settings,
            self.model.lexical,
            self.size.classes,
            steps_per_epoch=100,
            steps=1000,
            reference=self.reference,
        )
        made.density.observe(float(self.size.open_words))
        made.density.begin()
        made.geco.start(bound=0.5)
        made.step = made.warmup_steps
        return made.to(self.model.lexical.weight.dtype)


# The default recipe with everything on: every parameter learns, words open at all positions, the
# content term is there too. The recipe itself freezes the dictionary, which spares both forms work.
EVERYTHING = DEFAULT.model_copy(
    update={
        "dictionary_rate_factor": 1.0,
        "content": Content(),
        "model": DEFAULT.model.model_copy(update={"positions": "words"}),
    }
)


def build_problem(
    size: Size, settings: Settings = EVERYTHING, dtype: torch.dtype = torch.float32
) -> Problem:
    # a target well below what is open, so that the sparsity term pushes
    words = {"target_words": max(1, size.open_words // 4), "start_words": size.open_words}
    settings = settings.model_copy(update=words)
    tokenizer = made_up_tokenizer(size)
    model = LexicalSAE.from_backbone(
        _backbone(size),
        labels=[f"class {c}" for c in range(size.classes)],
        tokenizer=tokenizer,
        **{**settings.model.model_dump(), "dictionary": "all", "max_tokens": size.length},
    )
    for parameter in (*model.parameters(), *model.buffers()):
        if parameter.is_floating_point():
            parameter.data = parameter.data.to(dtype)
    prepare_model(model, settings)
    texts = _texts(tokenizer, BATCHES * size.batch, size.length)
    model.calibrate(texts, size.open_words)
    encoded = model.encode(texts).model_inputs()
    content_mask = model.content_mask(**encoded)
    labels = torch.arange(len(texts)) % size.classes
    steps = []
    for start in range(0, len(texts), size.batch):
        index = torch.arange(start, start + size.batch)
        ids, mask = encoded["input_ids"][index], encoded["attention_mask"][index]
        steps.append(Step(ids, mask, texts_batch(labels[index], index, content_mask[index])))
    reference = _untrained_words(model, steps)
    model.train()
    return Problem(model, settings, steps, reference, size)


@torch.no_grad()
def _untrained_words(model: LexicalSAE, steps: list[Step]) -> Reference:
    """Half of the words that open, as if training had moved the others; and, on the way, an output
    bias that centres the logits, so that no class takes all the texts."""
    builder = ReferenceWordsBuilder(model.config.dictionary_size)
    logits = []
    with in_mode(model, training=False):
        for step in steps:
            state = model.classify(step.input_ids, step.attention_mask)
            builder.add(step.batch.index, state.open_words)
            logits.append(state.logits)
    bias = dict(model.head.named_parameters())["b2"]
    bias.sub_(torch.cat(logits).mean(0))
    keys = builder.build().keys
    kept = torch.rand(len(keys), generator=torch.Generator().manual_seed(0)) < 0.5
    words = ReferenceWords(keys[kept], model.config.dictionary_size)
    return Reference(words, stride=1, batches=())


def _backbone(size: Size) -> BertForMaskedLM:
    config = BertConfig(
        vocab_size=size.vocabulary,
        hidden_size=size.hidden,
        num_hidden_layers=size.layers,
        num_attention_heads=max(1, size.hidden // 64),
        intermediate_size=4 * size.hidden,
        max_position_embeddings=max(size.length, 16),
        pad_token_id=0,
    )
    build: Any = BertForMaskedLM  # not annotated in transformers
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        backbone: BertForMaskedLM = build(config)
        embedding: Any = backbone.get_input_embeddings()
        with torch.no_grad():  # logits that spread like a trained model's
            embedding.weight.mul_(8)
    return backbone


def made_up_tokenizer(size: Size) -> PreTrainedTokenizerFast:
    """Special tokens, a few function words, then made-up words up to the size asked for."""
    syllables = [c + v for c in "bcdfghjklmnprstvwxyz" for v in "aeiou"]
    made_up = ("".join(parts) for parts in itertools.product(syllables, repeat=3))
    entries = [*SPECIAL, *FUNCTION_WORDS]
    entries += itertools.islice(made_up, size.vocabulary - len(entries))
    vocabulary = {entry: index for index, entry in enumerate(entries)}
    core = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    core.normalizer = normalizers.BertNormalizer(lowercase=True)
    core.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    core.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[(t, vocabulary[t]) for t in ("[CLS]", "[SEP]")]
    )
    names = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    build: Any = PreTrainedTokenizerFast
    tokenizer: PreTrainedTokenizerFast = build(
        tokenizer_object=core,
        model_max_length=size.length,
        **dict(zip(names, SPECIAL, strict=True)),
    )
    return tokenizer


def _texts(tokenizer: PreTrainedTokenizerFast, count: int, length: int) -> list[str]:
    """Random texts of exactly `length` tokens with [CLS] and [SEP]; a quarter function words."""
    words = sorted(set(tokenizer.get_vocab()) - set(SPECIAL) - set(FUNCTION_WORDS))
    draw = random.Random(0)
    return [
        " ".join(
            draw.choice(FUNCTION_WORDS if place % 4 == 3 else words) for place in range(length - 2)
        )
        for _ in range(count)
    ]
