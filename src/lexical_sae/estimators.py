"""What users hold: a classifier with scikit-learn's conventions, lists of strings in, numpy out."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError

from lexical_sae.attribution.explain import explain, explain_many
from lexical_sae.attribution.explanation import Explanation
from lexical_sae.model.lexical_sae import LexicalSAE
from lexical_sae.predicting import Predictions, predict_texts
from lexical_sae.text.dataset import TextDataset
from lexical_sae.text.splits import stratified_cut
from lexical_sae.text.tokenise import check_texts
from lexical_sae.training.config import DEFAULT_BACKBONE, RunConfig, resolve_config
from lexical_sae.training.environment import write_json
from lexical_sae.training.fit import fit
from lexical_sae.training.progress import ProgressCallback

CLASSES_FILE = "classifier.json"
# settings that are arguments of their own; None leaves them to the recipe
_KNOBS = (
    *("target_words", "target_accuracy", "circuit_fraction", "warmup_fraction", "learning_rate"),
    *("batch_size", "gradient_accumulation_steps", "epochs", "max_length"),
)


class LexicalClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A text classifier whose every decision is a short, exact sum over words.

    The arguments are those of a recipe that are changed most; `settings` takes any other (see
    `lexical-sae recipes NAME`). `validation_fraction` of the training texts is held out to watch
    the training; it is never used to fit.
    """

    def __init__(
        self,
        recipe: str = "default",
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

    # -- fitting -------------------------------------------------------------------------------

    def fit(self, X: Iterable[str], y: Iterable[Any]) -> LexicalClassifier:
        """X: texts; y: a label for each, of any type that numpy can sort."""
        texts = _as_texts(X)
        given = np.asarray(y if isinstance(y, (Sequence, np.ndarray)) else list(y))
        if given.ndim != 1 or len(given) != len(texts):
            raise ValueError(
                f"y has shape {given.shape} for {len(texts)} texts; expected one label per text."
            )
        classes, labels = np.unique(given, return_inverse=True)
        config = self._config()
        names = tuple(str(c) for c in classes.tolist())
        whole = TextDataset(
            "the texts given to fit",
            "train",
            "classification",
            names,
            texts=texts,
            labels=[int(label) for label in labels],
        )
        train, validation = _hold_out(whole, self.validation_fraction, self.seed)
        with tempfile.TemporaryDirectory(prefix="lexical-sae-") as folder:
            shown = ProgressCallback(Console(stderr=True))
            with shown:
                fitted = fit(
                    config, train, validation, Path(folder), callbacks=[shown] * self.progress
                )
        if fitted.stopped is not None:
            raise KeyboardInterrupt(f"fit was stopped by {fitted.stopped}")
        self.classes_ = classes
        self.model_ = fitted.model
        return self

    def _config(self) -> RunConfig:
        knobs = {name: getattr(self, name) for name in _KNOBS if getattr(self, name) is not None}
        both = sorted(set(knobs) & set(self.settings or {}))
        if both:
            raise ValueError(f"{both[0]} is given twice, as an argument and in settings; drop one.")
        return resolve_config(
            {
                "dataset": "the texts given to fit",
                "recipe": self.recipe,
                "backbone": self.backbone,
                "seed": self.seed,
                **knobs,
                **(self.settings or {}),
            },
            where="LexicalClassifier",
        )

    # -- predicting ----------------------------------------------------------------------------

    def predict(self, X: Iterable[str]) -> npt.NDArray[Any]:
        """The label of each text, of the type that fit was given."""
        best = self._predictions(X).probabilities.argmax(1)
        found: npt.NDArray[Any] = self.classes_[best]
        return found

    def predict_proba(self, X: Iterable[str]) -> npt.NDArray[np.float64]:
        """[N, C], the columns in the order of `classes_`."""
        return self._predictions(X).probabilities

    def _predictions(self, X: Iterable[str]) -> Predictions:
        return predict_texts(self._fitted(), _as_texts(X))

    def _fitted(self) -> LexicalSAE:
        if not hasattr(self, "model_"):
            raise NotFittedError(
                "This LexicalClassifier is not fitted; call fit(texts, labels) or load(folder)."
            )
        model: LexicalSAE = self.model_
        return model

    def explain(
        self, text: str, label: Any = None, against: Any = None, *, method: str = "contributions"
    ) -> Explanation:
        """Why `text` gets `label` (the predicted one if None), or `label` rather than `against`."""
        names = [None if name is None else str(name) for name in (label, against)]
        return explain(self._fitted(), text, *names, method=method)

    def explain_many(
        self,
        X: Iterable[str],
        label: Any = None,
        against: Any = None,
        *,
        method: str = "contributions",
    ) -> list[Explanation]:
        """`explain` for every text, for little more than the cost of `predict`."""
        names = [None if name is None else str(name) for name in (label, against)]
        return explain_many(self._fitted(), _as_texts(X), *names, method=method)

    # -- files ---------------------------------------------------------------------------------

    def save(self, folder: str | Path) -> None:
        """Model, classes and arguments; the folder can also be used with `lexical-sae predict`."""
        if not hasattr(self, "model_"):
            raise NotFittedError("This LexicalClassifier is not fitted; there is nothing to save.")
        self.model_.save_pretrained(folder)
        kind = self.classes_.dtype.str
        if self.classes_.dtype == object:
            raise ValueError("Labels of mixed types cannot be saved; expected all of one type.")
        write_json(
            Path(folder) / CLASSES_FILE,
            {"classes": self.classes_.tolist(), "dtype": kind, "arguments": self.get_params()},
        )

    @classmethod
    def load(cls, folder: str | Path) -> LexicalClassifier:
        """What `save` wrote, or the model of a run (its classes are then the names of labels)."""
        from lexical_sae.runs import model_folder_of

        where = model_folder_of(Path(folder))
        model = LexicalSAE.from_pretrained(where)
        file = where / CLASSES_FILE
        if file.is_file():
            saved = json.loads(file.read_text())
            loaded = cls(**saved["arguments"])
            loaded.classes_ = np.array(saved["classes"], dtype=saved["dtype"])
        else:
            loaded = cls()
            loaded.classes_ = np.array(model.config.labels)
        loaded.model_ = model
        return loaded


def _as_texts(X: Iterable[str]) -> list[str]:
    """Lists, tuples, arrays of strings, pandas columns; anything else is refused."""
    if isinstance(X, (str, bytes)):
        raise ValueError("X is one string; expected a list of strings, e.g. [text].")
    shape = getattr(X, "shape", None)
    if shape is not None and len(shape) != 1:
        raise ValueError(f"X has shape {shape}; expected a list or column of texts.")
    texts = [str(text) if isinstance(text, np.str_) else text for text in X]
    check_texts(texts)
    return texts


def _hold_out(
    whole: TextDataset, fraction: float, seed: int
) -> tuple[TextDataset, TextDataset | None]:
    if not 0 <= fraction < 1:
        raise ValueError(f"validation_fraction is {fraction}; expected 0 (none) up to below 1.")
    if fraction == 0 or len(whole) < 20:
        return whole, None
    stay, cut = stratified_cut(whole.labels, fraction, seed)
    return whole.select(stay), whole.select(cut)
