"""A run of transformers' Trainer that takes a moment, and something that kills it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import Trainer, TrainerCallback, TrainingArguments


class _Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(1, 1)

    def forward(self, x: Tensor, labels: Tensor) -> dict[str, Tensor]:
        return {"loss": ((self.layer(x).squeeze(-1) - labels) ** 2).mean()}


class Kill(TrainerCallback):
    """Ctrl-C at the end of step 7."""

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.global_step == 7:
            raise KeyboardInterrupt


def small_trainer(folder: Path, *callbacks: TrainerCallback) -> Trainer:
    """Ten steps, each logged; checkpoints at 4, 8 and 10."""
    rows: Any = [{"x": torch.tensor([i / 8]), "labels": torch.tensor(i / 4)} for i in range(8)]
    arguments = TrainingArguments(
        output_dir=str(folder),
        max_steps=10,
        per_device_train_batch_size=2,
        logging_steps=1,
        save_steps=4,
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
    )
    return Trainer(_Model(), arguments, train_dataset=rows, callbacks=list(callbacks))
