"""SetFit, where it is installed: a sentence encoder tuned on pairs, with a logistic head."""

from __future__ import annotations

import contextlib
import io
import tempfile
import time
from importlib.util import find_spec
from typing import Any

from lexical_sae.text.dataset import TextDataset
from lexical_sae.training.config import RunConfig


def missing_setfit() -> str:
    """Why it is left out; empty if it is installed."""
    if find_spec("setfit") is not None:
        return ""
    return "SetFit is not installed, so it is left out; run pip install setfit to have it compared."


def setfit_baseline(
    config: RunConfig, train: TextDataset, test: TextDataset, steps: int
) -> dict[str, Any]:
    """On the same backbone, rows and batch size, otherwise with its own defaults, and at most so
    many steps of pairs."""
    from datasets import Dataset
    from setfit import SetFitModel, Trainer, TrainingArguments

    from lexical_sae.model.backbone import resolve_name

    model = SetFitModel.from_pretrained(resolve_name(config.backbone))
    rows = Dataset.from_dict({"text": train.texts, "label": train.labels})
    with tempfile.TemporaryDirectory(prefix="lexical-sae-") as scratch:
        arguments = TrainingArguments(
            output_dir=scratch,
            batch_size=config.settings.batch_size or 16,
            max_steps=steps,
            seed=config.settings.seed,
            report_to="none",
            logging_strategy="no",
            show_progress_bar=False,
        )
        start = time.perf_counter()
        # bars and logs of its own come all the same, in the middle of ours
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            Trainer(model=model, args=arguments, train_dataset=rows).train()
        seconds = time.perf_counter() - start
    start = time.perf_counter()
    said = [int(label) for label in model.predict(test.texts)]
    return {
        "right": "".join("1" if a == b else "0" for a, b in zip(said, test.labels, strict=True)),
        "seconds": seconds,
        "predict_ms": 1000 * (time.perf_counter() - start) / len(test),
    }
