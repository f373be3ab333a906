"""What the classifier and the tagger share: arguments, fitting, the fitted model, files."""

from __future__ import annotations

import copy
import json
import tempfile
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from rich.console import Console
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from lexical_sae.model.lexical_sae import LexicalSAE
from lexical_sae.text.dataset import TextDataset
from lexical_sae.training.config import DEFAULT_BACKBONE, RunConfig, resolve_config
from lexical_sae.training.environment import write_json
from lexical_sae.training.fit import fit
from lexical_sae.training.progress import ProgressCallback

# settings that are arguments of their own; None leaves them to the recipe
_KNOBS = (
    *("target_words", "target_accuracy", "circuit_fraction", "warmup_fraction", "learning_rate"),
    *("batch_size", "gradient_accumulation_steps", "epochs", "max_length"),
)
FITTED_ON = "the texts given to fit"
Fitted = TypeVar("Fitted", bound="LexicalEstimator")


class LexicalEstimator(BaseEstimator):  # type: ignore[misc]
    """The arguments are those of a recipe that are changed most; `settings` takes any other (see
    `lexical-sae recipes NAME`). `validation_fraction` of the training texts is held out to watch
    the training; it is never used to fit. `recipe` None is the one for the task.
    """

    task: ClassVar[str]
    default_recipe: ClassVar[str]
    file: ClassVar[str]  # what save writes beside the model
    model_: LexicalSAE

    def __init__(
        self,
        recipe: str | None = None,
        backbone: str = DEFAULT_BACKBONE,
        *,
        target_words: int | None = None,
        target_accuracy: float | None = None,
        circuit_fraction: float | None = None,
        warmup_fraction: float | None = None,
        learning_rate: float | None = None,
        batch_size: int | None = None,
        gradient_accumulation_steps: int | None = None,
        epochs: float | None = None,
        max_length: int | None = None,
        seed: int = 0,
        validation_fraction: float = 0.1,
        settings: Mapping[str, Any] | None = None,
        progress: bool = False,
    ) -> None:
        self.recipe = recipe
        self.backbone = backbone
        self.target_words = target_words
        self.target_accuracy = target_accuracy
        self.circuit_fraction = circuit_fraction
        self.warmup_fraction = warmup_fraction
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.gradient_accumulation_steps = gradient_accumulation_steps
        self.epochs = epochs
        self.max_length = max_length
        self.seed = seed
        self.validation_fraction = validation_fraction
        self.settings = settings
        self.progress = progress

    def _train(self, config: RunConfig, train: TextDataset, held: TextDataset | None) -> LexicalSAE:
        with tempfile.TemporaryDirectory(prefix="lexical-sae-") as folder:
            shown = ProgressCallback(Console(stderr=True))
            with shown:
                fitted = fit(config, train, held, Path(folder), callbacks=[shown] * self.progress)
        if fitted.stopped is not None:
            raise KeyboardInterrupt(f"fit was stopped by {fitted.stopped}")
        model: LexicalSAE = fitted.model
        return model

    def _config(self) -> RunConfig:
        knobs = {name: getattr(self, name) for name in _KNOBS if getattr(self, name) is not None}
        both = sorted(set(knobs) & set(self.settings or {}))
        if both:
            raise ValueError(f"{both[0]} is given twice, as an argument and in settings; drop one.")
        return resolve_config(
            {
                "dataset": FITTED_ON,
                "recipe": self.default_recipe if self.recipe is None else self.recipe,
                "backbone": self.backbone,
                "seed": self.seed,
                **knobs,
                **(self.settings or {}),
            },
            where=type(self).__name__,
        )

    def _fitted(self) -> LexicalSAE:
        if not hasattr(self, "model_"):
            raise NotFittedError(
                f"This {type(self).__name__} is not fitted; call fit or load(folder)."
            )
        return self.model_

    def without(
        self: Fitted,
        words: Iterable[str],
        *,
        patterns: Iterable[str] = (),
        exact: bool = False,
        how: str = "cut",
    ) -> Fitted:
        """The same estimator without some words, and their other forms unless `exact`. `how`: their
        coordinates are "cut" and never open, whatever the text; the words are left "unread" in
        every text; or "both". Weights are shared; this one stays as it is. A word that is to be cut
        and is not in the dictionary gets a warning that names the nearest ones."""
        from lexical_sae.surgery.selection import no_word
        from lexical_sae.surgery.suppression import suppress_words

        cut = suppress_words(self._fitted(), words, patterns=patterns, exact=exact, how=how)
        for missing in () if cut.removal.unread else cut.selection.missing.items():
            warnings.warn(no_word(*missing), stacklevel=2)
        other = copy.copy(self)
        other.model_ = cut.view
        return other

    def _save(self, folder: str | Path, also: Mapping[str, Any]) -> None:
        self._fitted().save_pretrained(folder)
        write_json(Path(folder) / self.file, {**also, "arguments": self.get_params()})

    @classmethod
    def _load(cls: type[Fitted], folder: str | Path) -> tuple[Fitted, dict[str, Any]]:
        """The estimator, and what `_save` wrote beside its model (nothing for a run's model)."""
        from lexical_sae.runs import model_folder_of

        where = model_folder_of(Path(folder))
        model = LexicalSAE.from_pretrained(where)
        if model.config.task != cls.task:
            raise ValueError(
                f"The model in {folder} is for {model.config.task}; {cls.__name__} loads models "
                f"for {cls.task}."
            )
        file = where / cls.file
        saved: dict[str, Any] = json.loads(file.read_text()) if file.is_file() else {}
        loaded = cls(**saved.get("arguments", {}))
        loaded.model_ = model
        return loaded, saved
