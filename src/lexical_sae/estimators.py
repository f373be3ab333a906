"""What users hold: a classifier and a tagger with scikit-learn's conventions."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin

from lexical_sae.attribution.explain import explain, explain_many
from lexical_sae.attribution.explanation import Explanation
from lexical_sae.attribution.tag_explanation import TagExplanation
from lexical_sae.attribution.tags import explain_tags
from lexical_sae.estimator_base import FITTED_ON, LexicalEstimator
from lexical_sae.predicting import Predictions, predict_texts
from lexical_sae.tagging import predict_tags
from lexical_sae.text.dataset import TextDataset, check_dataset
from lexical_sae.text.entities import Entity
from lexical_sae.text.entity_scores import entity_scores
from lexical_sae.text.iob import tag_inventory
from lexical_sae.text.splits import stratified_cut
from lexical_sae.text.tag_schemes import to_iob2
from lexical_sae.text.tokenise import check_texts


class LexicalClassifier(ClassifierMixin, LexicalEstimator):  # type: ignore[misc]
    """A text classifier whose every decision is a short, exact sum over words: lists of strings in,
    numpy out.

    The arguments are those of a recipe that are changed most; `settings` takes any other (see
    `lexical-sae recipes NAME`). `validation_fraction` of the training texts is held out to watch
    the training; it is never used to fit.
    """

    task: ClassVar[str] = "classification"
    default_recipe: ClassVar[str] = "default"
    file: ClassVar[str] = "classifier.json"

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
        whole = TextDataset(
            FITTED_ON,
            "train",
            "classification",
            tuple(str(c) for c in classes.tolist()),
            texts=texts,
            labels=[int(label) for label in labels],
        )
        train, validation = _hold_out(whole, self.validation_fraction, self.seed)
        self.model_ = self._train(config, train, validation)
        self.classes_ = classes
        return self

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

    def read_windows(self, on: bool = True) -> LexicalClassifier:
        """From now on texts longer than the model reads at once are read whole, in overlapping
        windows, instead of being cut; `save` keeps it."""
        self._fitted().read_windows(on)
        return self

    def save(self, folder: str | Path) -> None:
        """Model, classes and arguments; the folder can also be used with `lexical-sae predict`."""
        self._fitted()
        if self.classes_.dtype == object:
            raise ValueError("Labels of mixed types cannot be saved; expected all of one type.")
        kind = self.classes_.dtype.str
        self._save(folder, {"classes": self.classes_.tolist(), "dtype": kind})

    @classmethod
    def load(cls, folder: str | Path) -> LexicalClassifier:
        """What `save` wrote, or the model of a run (its classes are then the names of labels)."""
        loaded, saved = cls._load(folder)
        classes = saved.get("classes", loaded.model_.config.labels)
        loaded.classes_ = np.array(classes, dtype=saved.get("dtype"))
        return loaded


class LexicalTagger(LexicalEstimator):
    """A tagger of words whose every tag is a short, exact sum over words: lists of words in, lists
    of tags out. Texts are split into words where lists of words are not at hand.

    The arguments are those of `LexicalClassifier`, for the recipe `tagging`.
    """

    task: ClassVar[str] = "tagging"
    default_recipe: ClassVar[str] = "tagging"
    file: ClassVar[str] = "tagger.json"

    def fit(self, X: Iterable[Sequence[str]], y: Iterable[Sequence[str]]) -> LexicalTagger:
        """X: sentences, each a list of words; y: a tag for each word (IOB2, IOB1, BILOU, BIOES)."""
        sentences, given = _as_lists(X, "X", "words"), _as_lists(y, "y", "tags")
        if len(sentences) != len(given):
            raise ValueError(
                f"y has {len(given)} lists of tags for {len(sentences)} sentences; expected one "
                "each."
            )
        tags, scheme = to_iob2(given)
        if scheme is not None:
            warnings.warn(f"The tags are {scheme}; they were converted to IOB2.", stacklevel=2)
        names = tag_inventory(tag for row in tags for tag in row)
        place = {name: i for i, name in enumerate(names)}
        strange = next((tag for row in tags for tag in row if tag not in place), None)
        if strange is not None:
            raise ValueError(f"y has the tag {strange!r}; expected O, B-TYPE and I-TYPE.")
        whole = TextDataset(
            FITTED_ON,
            "train",
            "tagging",
            names,
            tokens=sentences,
            tags=[[place[tag] for tag in row] for row in tags],
        )
        check_dataset(whole, training=True)  # before a part is held out, so that rows are counted
        config = self._config()
        train, validation = _hold_out(whole, self.validation_fraction, self.seed)
        self.model_ = self._train(config, train, validation)
        return self

    @property
    def classes_(self) -> list[str]:
        """The tags."""
        return list(self._fitted().config.labels)

    def predict(self, X: Iterable[str | Sequence[str]]) -> list[list[str]]:
        """A tag for each word of each sentence; together they are legal IOB2."""
        return [list(found.tags) for found in predict_tags(self._fitted(), list(X))]

    def predict_entities(self, X: Iterable[str | Sequence[str]]) -> list[list[Entity]]:
        """The entities of each sentence or text."""
        return [list(found.entities) for found in predict_tags(self._fitted(), list(X))]

    def explain(self, sentence: str | Sequence[str]) -> TagExplanation:
        """The exact sum behind every tag and every entity."""
        return self.explain_many([sentence])[0]

    def explain_many(self, X: Iterable[str | Sequence[str]]) -> list[TagExplanation]:
        return explain_tags(self._fitted(), list(X))

    def score(self, X: Iterable[Sequence[str]], y: Iterable[Sequence[str]]) -> float:
        """F1 of entities, strict: span and type must be right."""
        gold, _ = to_iob2([list(tags) for tags in y])
        return entity_scores(gold, self.predict(X)).micro.f1

    def save(self, folder: str | Path) -> None:
        """Model and arguments; the folder can also be used with `lexical-sae predict`."""
        self._save(folder, {})

    @classmethod
    def load(cls, folder: str | Path) -> LexicalTagger:
        """What `save` wrote, or the model of a run."""
        return cls._load(folder)[0]


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


def _as_lists(given: Iterable[Sequence[str]], name: str, what: str) -> list[list[str]]:
    """Lists of strings; anything else is refused."""
    rows = []
    for index, row in enumerate(given):
        if isinstance(row, str) or not all(isinstance(one, str) for one in row):
            raise ValueError(f"{name}[{index}] is {row!r}; expected a list of {what} (strings).")
        rows.append(list(row))
    return rows


def _hold_out(
    whole: TextDataset, fraction: float, seed: int
) -> tuple[TextDataset, TextDataset | None]:
    if not 0 <= fraction < 1:
        raise ValueError(f"validation_fraction is {fraction}; expected 0 (none) up to below 1.")
    if fraction == 0 or len(whole) < 20:
        return whole, None
    labels = whole.labels if whole.task == "classification" else [0] * len(whole)
    stay, cut = stratified_cut(labels, fraction, seed)
    return whole.select(stay), whole.select(cut)
