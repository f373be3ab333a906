"""LexicalTrainer: transformers' Trainer with the objective, its state, and the two phases."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.utils.data import Sampler
from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments

from lexical_sae.training.accuracy_bound import AccuracyBound
from lexical_sae.training.averaging import WeightAverage
from lexical_sae.training.batching import IGNORED, Collate, EncodedTexts, LengthBuckets
from lexical_sae.training.best import BestWeights
from lexical_sae.training.centralisation import centralise_gradients
from lexical_sae.training.decisions import decide
from lexical_sae.training.guide import watching
from lexical_sae.training.measure import measure
from lexical_sae.training.objective import Objective
from lexical_sae.training.optimizers import (
    build_optimizer,
    build_schedule,
    parameter_groups,
    part_of,
    warmup_steps,
)
from lexical_sae.training.schedule_free import evaluation_weights
from lexical_sae.training.settings import Settings

TENSORS, NUMBERS = "objective.safetensors", "objective.json"


class LexicalTrainer(Trainer):
    """Trains a `LexicalSAE` (or its dense twin) by the settings of a recipe.

    `objective` holds λ, τ, running means, centroids, frequencies and the phase; it is saved with
    every checkpoint and restored with it, so that a resumed run goes on as if nothing had been.
    """

    model: Any
    objective: Objective

    def __init__(
        self,
        model: nn.Module,
        settings: Settings,
        objective: Objective,
        train: EncodedTexts,
        validation: EncodedTexts | None,
        *,
        args: TrainingArguments,
        pad_id: int,
        best: BestWeights | None = None,
        callbacks: list[TrainerCallback] | None = None,
    ) -> None:
        self.settings = settings
        self.objective = objective
        self.collate = Collate(pad_id)
        self.best = best
        self.average: WeightAverage | None = None
        self.accuracy_bound: AccuracyBound | None = None
        self._since_log: list[dict[str, float]] = []
        self._usual_decisions: float | None = None
        self.seconds_before = 0.0  # of training, before this process took it up
        self.cpu_before = 0.0
        self._started = time.perf_counter(), time.process_time()
        super().__init__(
            model=model,
            args=args,
            data_collator=self.collate,
            train_dataset=train,
            eval_dataset=validation,
            callbacks=[_StepEnd(self), *([best] if best else []), *(callbacks or [])],
        )
        if best is not None:
            best.trainer = self
        self.remove_callback(PrinterCallback)  # it prints every log as a dictionary
        self.objective.to(self.args.device)
        if settings.weight_average is not None:
            self.average = WeightAverage(model, settings.weight_average, objective.steps)
        if settings.target_accuracy is not None:
            classes = len(getattr(model.config, "labels", ())) or 2
            self.accuracy_bound = AccuracyBound(settings.target_accuracy, classes)
        # the loss of a batch is a mean: Trainer divides it by the number of accumulated batches
        self.loss_is_scaled_for_ga = False

    # -- one step ------------------------------------------------------------------------------

    def compute_loss(
        self,
        model: nn.Module,
        inputs: dict[str, Any],
        return_outputs: bool = False,
        num_items_in_batch: Any = None,
    ) -> Any:
        guide, precision = self.objective.guide, self.settings.precision
        state, batch = decide(model, inputs, guide, precision)
        if self.objective.settings.content is not None:
            mask = self.model.content_mask(inputs["input_ids"], inputs["attention_mask"])
            batch = replace(batch, content_mask=mask)
        loss = self.objective(state, batch, self._usual_decisions)
        return (loss, state) if return_outputs else loss

    def train(self, *args: Any, **kwargs: Any) -> Any:
        with watching(self.objective.guide, self.model):
            return super().train(*args, **kwargs)

    def get_batch_samples(self, *args: Any, **kwargs: Any) -> Any:
        """The batches that make one step: where they hold different numbers of tagged words, each
        counts by its number."""
        batches, items = super().get_batch_samples(*args, **kwargs)
        counts = [int((batch["labels"] != IGNORED).sum()) for batch in batches]
        self._usual_decisions = sum(counts) / len(counts) if counts else None
        return batches, items

    def step_ended(self) -> None:
        """Controllers and averages move once per optimiser step."""
        was_circuit_phase = self.objective.in_circuit_phase
        self._since_log.append(self.objective.finish_step())
        self.objective.zero_grad()  # Trainer does it for the model only
        if self.average is not None:
            self.average.update(self.model)
        if self.objective.in_circuit_phase and not was_circuit_phase and self.accuracy_bound:
            self.evaluate()  # gives the bound its first point

    def centralise(self) -> None:
        if self.settings.gradient_centralisation:
            centralise_gradients(
                p for name, p in self.model.named_parameters() if part_of(name) != "head"
            )

    # -- data, optimiser -----------------------------------------------------------------------

    def _get_train_sampler(self, train_dataset: Any = None) -> Sampler[int]:
        texts: Any = train_dataset if train_dataset is not None else self.train_dataset
        batch = self.args.train_batch_size * self.args.world_size
        return LengthBuckets(texts.lengths, batch, self.args.seed)

    def create_optimizer(self, model: nn.Module | None = None) -> torch.optim.Optimizer:
        if self.optimizer is None:
            groups = parameter_groups(
                model if model is not None else self.model,
                self.settings,
                self.objective.parameters(),
                self.objective.guide,
            )
            self.optimizer = build_optimizer(
                groups,
                self.settings,
                warmup_steps=warmup_steps(self.settings, self.objective.steps),
            )
        optimizer: torch.optim.Optimizer = self.optimizer
        return optimizer

    def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:
        if self.lr_scheduler is None:
            inner: Any = optimizer if optimizer is not None else self.optimizer
            schedule: Any = build_schedule(inner, self.settings, num_training_steps)
            self.lr_scheduler = schedule
            self._created_lr_scheduler = True
        return self.lr_scheduler

    # -- evaluation ----------------------------------------------------------------------------

    @contextlib.contextmanager
    def evaluated_weights(self) -> Iterator[None]:
        """The weights that count: Schedule-Free's average, or the running one."""
        with contextlib.ExitStack() as stack:
            if self.optimizer is not None:
                stack.enter_context(evaluation_weights(self.optimizer))
            if self.average is not None and self.average.updates:
                stack.enter_context(self.average.applied(self.model))
            yield

    def evaluate(
        self,
        eval_dataset: Any = None,
        ignore_keys: list[str] | None = None,
        metric_key_prefix: str = "eval",
    ) -> dict[str, float]:
        texts: Any = eval_dataset if eval_dataset is not None else self.eval_dataset
        if texts is None:
            raise ValueError("There is no validation split to evaluate on; give validation texts.")
        with self.evaluated_weights():
            found = measure(
                self.model, texts, self.collate, circuit_fraction=self._circuit_fraction()
            )
        if self.accuracy_bound is not None and eval_dataset is None:
            self._move_bound(found)
        metrics = {f"{metric_key_prefix}_{name}": value for name, value in found.items()}
        metrics[f"{metric_key_prefix}_phase"] = float(self.objective.has_circuit_steps)
        self.log(dict(metrics))
        self.control = self.callback_handler.on_evaluate(
            self.args, self.state, self.control, metrics
        )
        return metrics

    def _circuit_fraction(self) -> float | None:
        return self.settings.circuit_fraction if hasattr(self.model, "content_mask") else None

    def _move_bound(self, found: dict[str, float]) -> None:
        """The bound is measured on validation, and held on training batches, whose CE is another
        one (dropout, label smoothing): it moves with the difference of the two."""
        assert self.accuracy_bound is not None
        self.accuracy_bound.add(found["ce"], found["accuracy"])
        if self.objective.in_circuit_phase:
            recent = self.objective.recent_ce
            shift = (recent if recent is not None else found["ce"]) - found["ce"]
            self.objective.geco.start(max(1e-4, self.accuracy_bound.bound() + shift))

    # -- checkpoints ---------------------------------------------------------------------------

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        assert self.optimizer is not None
        with evaluation_weights(self.optimizer):
            super()._save_checkpoint(model, trial)

    def save_model(self, output_dir: str | None = None, _internal_call: bool = False) -> None:
        """The weights that count; a checkpoint (an internal call) keeps those of the training."""
        if _internal_call:
            super().save_model(output_dir, _internal_call=True)
            return
        with self.evaluated_weights():
            super().save_model(output_dir)

    def _save(self, output_dir: str | None = None, state_dict: Any = None) -> None:
        """Weights, config and tokenizer; Trainer's own form also pickles its arguments."""
        folder = output_dir or self.args.output_dir or "."
        os.makedirs(folder, exist_ok=True)
        self.model.save_pretrained(folder)

    def _save_optimizer_and_scheduler(self, output_dir: str) -> None:
        super()._save_optimizer_and_scheduler(output_dir)
        if not self.args.should_save:
            return
        tensors = dict(self.objective.state_dict())
        if self.average is not None:
            tensors |= {f"average.{k}": v for k, v in self.average.state_dict().items()}
        numbers = self.objective.numbers()
        wall, processor = self._started
        numbers["seconds"] = self.seconds_before + time.perf_counter() - wall
        numbers["cpu_seconds"] = self.cpu_before + time.process_time() - processor
        if self.accuracy_bound is not None:
            numbers["accuracy_bound"] = self.accuracy_bound.state_dict()
        if self.best is not None:
            numbers["best"] = self.best.state_dict()
        save_file({k: v.contiguous() for k, v in tensors.items()}, Path(output_dir) / TENSORS)
        (Path(output_dir) / NUMBERS).write_text(json.dumps(numbers))

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)
        if checkpoint is None:
            return
        tensors = load_file(Path(checkpoint) / TENSORS)
        average: dict[str, Tensor] = {
            name.removeprefix("average."): tensors.pop(name)
            for name in list(tensors)
            if name.startswith("average.")
        }
        if self.average is not None:
            self.average.load_state_dict(average)
        self.objective.load_state_dict(tensors)
        numbers = json.loads((Path(checkpoint) / NUMBERS).read_text())
        self.objective.load_numbers(numbers)
        self.seconds_before = numbers["seconds"]
        self.cpu_before = numbers.get("cpu_seconds", 0.0)
        if self.accuracy_bound is not None:
            self.accuracy_bound.load_state_dict(numbers["accuracy_bound"])
        if self.best is not None:
            self.best.load_state_dict(numbers["best"])

    # -- log -----------------------------------------------------------------------------------

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        if "loss" in logs:
            logs = {**logs, **_means(self._since_log)}
            self._since_log.clear()
        super().log(logs, start_time)


def _means(steps: list[dict[str, float]]) -> dict[str, float]:
    """Of every value over the steps that have it; those of the circuit phase start with it."""
    names = {name: None for step in steps for name in step}
    found = {name: [step[name] for step in steps if name in step] for name in names}
    return {name: sum(values) / len(values) for name, values in found.items()}


class _StepEnd(TrainerCallback):
    """Hands Trainer's events to the trainer's own methods."""

    def __init__(self, trainer: LexicalTrainer) -> None:
        self.trainer = trainer

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.trainer.centralise()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.trainer.step_ended()
