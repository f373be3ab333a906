"""From texts to a trained model: build, encode, prepare, train, and take the weights that count."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from accelerate import PartialState
from torch import nn
from transformers import TrainerCallback

from lexical_sae.model.backbone import length_limit
from lexical_sae.model.dense_twin import DenseTwin
from lexical_sae.model.lexical_sae import LexicalSAE
from lexical_sae.text.alignment import join_words
from lexical_sae.text.dataset import TextDataset, check_dataset
from lexical_sae.training.arguments import training_arguments
from lexical_sae.training.batch_size import LARGEST, choose_batch_size, free_memory
from lexical_sae.training.batching import Collate, EncodedTexts
from lexical_sae.training.best import BestWeights
from lexical_sae.training.checkpoints import last_checkpoint
from lexical_sae.training.combinations import TERMS
from lexical_sae.training.config import RunConfig
from lexical_sae.training.encoding import choose_max_length, cut_texts, encode_dataset
from lexical_sae.training.final_measure import final_measure, untrained_reference
from lexical_sae.training.freed_memory import freed_memory_kept
from lexical_sae.training.guide import build_guide
from lexical_sae.training.head_start import fit_head
from lexical_sae.training.interrupt import StopOnSignal
from lexical_sae.training.objective import Objective
from lexical_sae.training.preparation import prepare_model
from lexical_sae.training.reference import Reference, collect_reference
from lexical_sae.training.sense_words import with_labels, with_senses
from lexical_sae.training.settings import Settings
from lexical_sae.training.stopwatch import Stopwatch
from lexical_sae.training.trainer import LexicalTrainer
from lexical_sae.training.try_rates import try_rates

Say = Callable[[str], None]
HEAD_START_TEXTS = 2048


@dataclass(frozen=True, eq=False)
class Fitted:
    """A trained model and what its training took. `stopped` names the signal that ended it."""

    model: Any
    steps: int
    batch_size: int
    max_length: int
    learning_rate: float
    seconds: dict[str, float] = field(default_factory=dict)
    held_out: dict[str, float] = field(default_factory=dict)  # measures on the held-out texts
    validation: dict[str, float] = field(default_factory=dict)  # the same of these very weights
    stopped: str | None = None
    trainer: LexicalTrainer | None = None


def build_model(
    config: RunConfig, labels: Sequence[str], texts: Sequence[str], task: str = "classification"
) -> Any:
    """The untrained model of a run: adapted and calibrated, or the dense twin.

    Adaptation prepares the backbone and is cached; its seed is fixed, so that runs with different
    seeds start from the same lexical head, as they start from the same backbone.
    """
    settings = config.settings
    if config.dense_twin:
        return DenseTwin.from_backbone(config.backbone, labels, task, seed=settings.seed)
    model = LexicalSAE.from_backbone(
        config.backbone,
        labels,
        task,
        texts=texts,
        open_words=settings.start_words or 4 * settings.target_words,
        seed=settings.seed,
        adaptation_seed=0,
        **settings.model.model_dump(),
    )
    return with_senses(model, settings, texts)


def fit(
    config: RunConfig,
    train: TextDataset,
    validation: TextDataset | None,
    folder: Path,
    *,
    held_out: TextDataset | None = None,
    callbacks: Sequence[TrainerCallback] = (),
    resume: bool = False,
    log_every: int = 10,
    say: Say = lambda message: None,
) -> Fitted:
    """Train by `config`; checkpoints go to `folder`/checkpoints.

    `validation` may stop the training and is never the test split; `held_out` is only measured,
    once, at the end.
    """
    check_dataset(train, training=True)
    check_task_settings(config, train.task)
    settings, watch, processes = config.settings, Stopwatch(), PartialState()
    with watch.part("preparation"), processes.main_process_first():
        model = build_model(config, train.label_names, plain_texts(train), train.task)
    prepare_model(model, settings)
    splits = {"train": train, "validation": validation, "held_out": held_out}
    max_length, encoded = _encode(model, settings, splits)
    batch_size = _batch_size(model, settings, max_length, processes.num_processes)
    rows = len(encoded["train"])
    steps_per_epoch = _steps_per_epoch(rows, batch_size, settings)
    steps = max(1, math.ceil(settings.epochs * steps_per_epoch - 1e-9))
    collate = Collate(model.tokenizer.pad_token_id)
    with watch.part("training"):  # reference and head are part of what training costs
        reference = _reference(model, settings, encoded["train"], collate)
        if reference is not None and settings.head_start:
            fit_head(model.head, reference, settings.head_start, settings.seed)
    untrained = untrained_reference(model, encoded.get("held_out"), collate)
    objective = Objective(
        without_terms(settings) if config.dense_twin else settings,
        getattr(model, "lexical", None),
        len(train.label_names),
        steps_per_epoch=steps_per_epoch,
        steps=steps,
        reference=reference,
        guide=build_guide(model, settings, len(train.label_names)),
    )
    rate = settings.learning_rate
    if settings.learning_rate_range_test:
        with watch.part("range_test"):
            rate = try_rates(model, objective, encoded["train"], collate, settings, batch_size)
        say(f"learning rate {rate:.1e}, by the range test")
        settings = settings.model_copy(update={"learning_rate": rate})
    best = BestWeights(folder / "best", settings.early_stopping, settings.target_words)
    signals = StopOnSignal()
    trainer = LexicalTrainer(
        model,
        settings,
        objective,
        encoded["train"],
        encoded.get("validation"),
        args=training_arguments(
            settings,
            folder / "checkpoints",
            batch_size=batch_size // processes.num_processes,
            steps=steps,
            rows=rows,
            evaluate=validation is not None,
            log_every=log_every,
        ),
        pad_id=model.tokenizer.pad_token_id,
        best=best,
        callbacks=[signals, *callbacks],
    )
    checkpoint = last_checkpoint(folder / "checkpoints") if resume else None
    processor = time.process_time()
    with watch.part("training"), signals.listening(), freed_memory_kept():
        trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    watch.seconds["training"] += trainer.seconds_before
    # what the processors worked: on a machine that is shared, the steadier of the two
    watch.seconds["training_cpu"] = trainer.cpu_before + time.process_time() - processor
    measured: dict[str, float] = {}
    if signals.received is None:
        _take_weights(trainer, best)
        if "held_out" in encoded:
            with watch.part("evaluation"):
                measured = final_measure(config, model, encoded["held_out"], collate, untrained)
    model.eval()
    with_labels(model, settings, plain_texts(train))
    return Fitted(
        model=model,
        steps=trainer.state.global_step,
        batch_size=batch_size,
        max_length=max_length,
        learning_rate=rate,
        seconds=watch.seconds,
        held_out=measured,
        validation=_validated(trainer, best),
        stopped=signals.received,
        trainer=trainer,
    )


def check_task_settings(config: RunConfig, task: str) -> None:
    """Refuse settings that have no meaning for the task of the data."""
    if task != "tagging" or config.dense_twin:
        return
    advice = "expected recipe: tagging, or model.positions: words and content: null."
    if config.settings.model.positions == "content":
        raise ValueError(
            f"model.positions is content, but in {config.dataset} every word has a tag; {advice}"
        )
    if config.settings.content is not None:
        raise ValueError(f"content is on, but in {config.dataset} every word has a tag; {advice}")


def plain_texts(data: TextDataset) -> list[str]:
    if data.task == "tagging":
        return [join_words(words).text for words in data.tokens]
    return data.texts


def without_terms(settings: Settings) -> Settings:
    """The same budget and optimiser on the task loss alone, for the dense twin."""
    off: dict[str, Any] = dict.fromkeys((*TERMS, "guide", "senses"))
    return settings.model_copy(update={**off, "weighting": "sum", "target_accuracy": None})


def _encode(
    model: Any, settings: Settings, splits: Mapping[str, TextDataset | None]
) -> tuple[int, dict[str, EncodedTexts]]:
    """Token ids of every split, and the length at which they are cut."""
    longest = length_limit(model.backbone, model.tokenizer)
    limit = settings.max_length
    if limit is not None and limit > longest:
        raise ValueError(f"max_length is {limit}; this backbone reads at most {longest} tokens.")

    def encoded(split: TextDataset, at: int) -> EncodedTexts:
        return encode_dataset(model.tokenizer, split, at, model.config.special_token_ids)

    found: dict[str, EncodedTexts] = {}
    if limit is None:
        train = splits["train"]
        assert train is not None
        whole = encoded(train, longest)
        limit = choose_max_length(whole, longest)
        special = model.config.special_token_ids
        found["train"] = cut_texts(model.tokenizer, train, whole, limit, special)
    model.config.max_tokens = limit
    others = {name: split for name, split in splits.items() if split and name not in found}
    return limit, {**found, **{name: encoded(split, limit) for name, split in others.items()}}


def _batch_size(model: Any, settings: Settings, length: int, processes: int) -> int:
    """Texts per step over all processes."""
    if settings.batch_size is None:
        if not isinstance(model, LexicalSAE):
            return LARGEST
        open_words = settings.start_words or 4 * settings.target_words
        return max(processes, choose_batch_size(model, length, open_words, free_memory()))
    if settings.batch_size % processes:
        raise ValueError(
            f"batch_size is {settings.batch_size}, which {processes} processes cannot share "
            "equally; choose a multiple."
        )
    return settings.batch_size


def _steps_per_epoch(rows: int, batch_size: int, settings: Settings) -> int:
    batches = rows // batch_size or 1
    return math.ceil(batches / settings.gradient_accumulation_steps)


def _reference(
    model: nn.Module, settings: Settings, train: EncodedTexts, collate: Collate
) -> Reference | None:
    if not isinstance(model, LexicalSAE) or (settings.anchor is None and not settings.head_start):
        return None
    sample = settings.anchor.texts if settings.anchor is not None else HEAD_START_TEXTS
    return collect_reference(model, train, collate, sample, settings.precision)


def _validated(trainer: LexicalTrainer, best: BestWeights) -> dict[str, float]:
    """What validation said of the weights that were taken: the best ones, or the last."""
    evaluations = [line for line in trainer.state.log_history if "eval_accuracy" in line]
    found = best.metrics or (evaluations[-1] if evaluations else {})
    return {
        name.removeprefix("eval_"): value
        for name, value in found.items()
        if name.startswith("eval_")
    }


@torch.no_grad()
def _take_weights(trainer: LexicalTrainer, best: BestWeights) -> None:
    """Put the weights that count into the model: the best ones, or the averaged last ones."""
    if best.restore(trainer.model):
        return
    with trainer.evaluated_weights():
        kept = {name: p.detach().clone() for name, p in trainer.model.named_parameters()}
    for name, p in trainer.model.named_parameters():
        p.copy_(kept[name])
