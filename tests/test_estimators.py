"""LexicalClassifier behaves as scikit-learn expects of a classifier of texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from lexical_sae import LexicalClassifier
from tests.training.small import save_backbone, small_dataset

DATA = small_dataset(120)
TEXTS = DATA.texts
NAMES = [DATA.label_names[label] for label in DATA.labels]


@pytest.fixture(scope="module")
def backbone(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_backbone(tmp_path_factory.mktemp("backbone")))


def classifier(backbone: str, **changes: Any) -> LexicalClassifier:
    chosen: dict[str, Any] = {
        "backbone": backbone,
        "epochs": 4,
        "batch_size": 8,
        "target_words": 4,
        "learning_rate": 3e-3,
        # this backbone is not pretrained: its words mean nothing that would be worth keeping
        "settings": {"start_words": 16, "dictionary_rate_factor": 1, "anchor": None},
    }
    return LexicalClassifier(**{**chosen, **changes})


@pytest.fixture(scope="module")
def fitted(backbone: str) -> LexicalClassifier:
    return classifier(backbone).fit(TEXTS, NAMES)


def test_it_learns_and_speaks_numpy(fitted: LexicalClassifier) -> None:
    found = fitted.predict(TEXTS[:10])
    assert isinstance(found, np.ndarray)
    assert set(found) <= {"negative", "positive"}
    assert fitted.classes_.tolist() == ["negative", "positive"]
    probabilities = fitted.predict_proba(TEXTS[:10])
    assert probabilities.shape == (10, 2)
    np.testing.assert_allclose(probabilities.sum(1), 1)
    assert (fitted.classes_[probabilities.argmax(1)] == found).all()
    assert fitted.score(TEXTS, NAMES) > 0.9


def test_labels_of_other_types_come_back_as_given(backbone: str) -> None:
    numbers = [7 if name == "positive" else -3 for name in NAMES]
    found = classifier(backbone, epochs=1).fit(np.array(TEXTS), np.array(numbers))
    assert found.classes_.tolist() == [-3, 7]
    assert found.predict(TEXTS[:3]).dtype.kind == "i"


def test_parameters_clone_pipeline_and_cross_validation(backbone: str) -> None:
    estimator = classifier(backbone, epochs=1)
    assert is_classifier(estimator)
    assert clone(estimator).get_params() == estimator.get_params()
    assert estimator.set_params(epochs=2).epochs == 2
    chain = Pipeline(
        [("lower", FunctionTransformer(lambda X: [t.lower() for t in X])), ("model", estimator)]
    )
    scores = cross_val_score(chain, TEXTS, NAMES, cv=2)
    assert scores.shape == (2,)
    assert np.isfinite(scores).all()


def test_save_and_load(fitted: LexicalClassifier, tmp_path: Path) -> None:
    fitted.save(tmp_path / "saved")
    loaded = LexicalClassifier.load(tmp_path / "saved")
    assert loaded.get_params() == fitted.get_params()
    np.testing.assert_array_equal(loaded.predict_proba(TEXTS), fitted.predict_proba(TEXTS))
    assert loaded.classes_.dtype == fitted.classes_.dtype


def test_the_same_seed_gives_the_same_model(backbone: str, fitted: LexicalClassifier) -> None:
    again = classifier(backbone).fit(TEXTS, NAMES)
    np.testing.assert_array_equal(again.predict_proba(TEXTS), fitted.predict_proba(TEXTS))


@pytest.mark.parametrize(
    ("X", "y", "sentence"),
    [
        ("one text", ["a"], "one string"),
        (["a text"], ["a", "b"], "one label per text"),
        ([["a text"], ["b"]], ["a", "b"], "expected a string"),
        (np.array([["a", "b"]]), ["a"], "shape"),
        (["a text", "b text"], ["same", "same"], "one class"),
        (["a text", 3], ["a", "b"], "expected a string"),
        ([], [], "empty"),
    ],
)
def test_bad_input_gets_one_sentence(backbone: str, X: Any, y: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence) as caught:
        classifier(backbone).fit(X, y)
    assert "\n" not in str(caught.value)


def test_unknown_settings_and_double_ones(backbone: str) -> None:
    with pytest.raises(ValueError, match="epochs"):
        classifier(backbone, settings={"epoch": 3}).fit(TEXTS, NAMES)
    with pytest.raises(ValueError, match="given twice"):
        classifier(backbone, settings={"epochs": 3}).fit(TEXTS, NAMES)
    with pytest.raises(NotFittedError, match="not fitted"):
        classifier(backbone).predict(TEXTS)


def test_without_words(fitted: LexicalClassifier, tmp_path: Path) -> None:
    opened = [word.word for word in fitted.explain(TEXTS[0]).vocabulary]
    with pytest.warns(UserWarning, match="'xyzzy' is not in the dictionary"):
        cut = fitted.without([opened[0], "xyzzy"], exact=True)
    assert opened[0] not in [word.word for word in cut.explain(TEXTS[0]).vocabulary]
    assert [word.word for word in fitted.explain(TEXTS[0]).vocabulary] == opened
    assert cut.classes_.tolist() == fitted.classes_.tolist()
    cut.save(tmp_path / "cut")
    again = LexicalClassifier.load(tmp_path / "cut")
    np.testing.assert_array_equal(again.predict_proba(TEXTS[:5]), cut.predict_proba(TEXTS[:5]))
