"""Early stopping: the best weights of the circuit phase, and patience with what comes after."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from transformers import TrainerCallback

TOLERATED = 1.25  # times the target: a denser model is no candidate while a sparser one exists


class BestWeights(TrainerCallback):
    """Keeps the weights with the best validation accuracy (F1 of a tagger); off without a patience.

    Evaluations of the warm-up do not count: its weights are not what the run is for, and patience
    starts anew when the circuit phase does.
    """

    def __init__(self, folder: Path, patience: int | None, target_words: float) -> None:
        self.folder = folder
        self.patience = patience
        self.target_words = target_words
        self.best: float | None = None
        self.waited = 0
        self.metrics: dict[str, float] = {}  # of the evaluation whose weights are kept
        self.trainer: Any = None  # set by the trainer, whose weights are kept

    def state_dict(self) -> dict[str, Any]:
        return {"best": self.best, "waited": self.waited, "metrics": self.metrics}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.best, self.waited = state["best"], state["waited"]
        self.metrics = dict(state.get("metrics", {}))

    def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        metrics: dict[str, float] = kwargs["metrics"]
        lexical = "eval_open_words" in metrics
        if self.patience is None or (lexical and not metrics["eval_phase"]):
            return
        score = metrics.get("eval_f1", metrics["eval_accuracy"])
        if lexical and metrics["eval_open_words"] > TOLERATED * self.target_words:
            score -= 1
        if self.best is None or score > self.best:
            self.best, self.waited, self.metrics = score, 0, dict(metrics)
            if state.is_world_process_zero:
                with self.trainer.evaluated_weights():
                    self.trainer.model.save_pretrained(self.folder)
            return
        self.waited += 1
        if self.waited >= self.patience:
            control.should_training_stop = True

    @torch.no_grad()
    def restore(self, model: torch.nn.Module) -> bool:
        """Load the best weights into `model`; False if none were kept."""
        if self.best is None:
            return False
        model.load_state_dict(load_file(self.folder / "model.safetensors"), strict=False)
        return True
