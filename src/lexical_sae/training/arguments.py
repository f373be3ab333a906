"""transformers' TrainingArguments for our settings."""

from __future__ import annotations

from pathlib import Path

from transformers import TrainingArguments

from lexical_sae.training.settings import Settings


def training_arguments(
    settings: Settings,
    checkpoints: Path,
    *,
    batch_size: int,
    steps: int,
    rows: int,
    evaluate: bool,
    log_every: int,
) -> TrainingArguments:
    """`batch_size` is per process; the optimiser and its schedule are the trainer's own."""
    every_epoch = "epoch" if steps > 1 else "no"
    return TrainingArguments(
        output_dir=str(checkpoints),
        max_steps=steps,
        per_device_train_batch_size=batch_size,
        gradient_accumulation_steps=settings.gradient_accumulation_steps,
        learning_rate=settings.learning_rate,
        max_grad_norm=settings.max_gradient_norm,
        seed=settings.seed,
        logging_strategy="steps",
        logging_steps=log_every,
        logging_first_step=True,
        save_strategy=every_epoch,
        save_total_limit=1,
        eval_strategy=every_epoch if evaluate else "no",
        report_to=[],
        disable_tqdm=True,
        remove_unused_columns=False,
        dataloader_pin_memory=False,
        dataloader_drop_last=rows >= batch_size,
        # a masked-language-model backbone keeps output biases that a sliced decoder does not use
        ddp_find_unused_parameters=True,
    )
