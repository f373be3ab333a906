"""The hub: real ``datasets`` objects in, and a quick, clear sentence where there is no hub."""

from __future__ import annotations

import sys
import time
from typing import Any

import pytest

from lexical_sae.text import DataError, SourceUnavailableError, load_dataset, load_hub
from lexical_sae.text.catalog import CATALOG, CONLL_TAGS
from lexical_sae.text.columns import GUESS, ReadOptions
from lexical_sae.text.convert import convert
from lexical_sae.text.hub import HubRepo, hub_reading, open_hub, table_from_hub

datasets = pytest.importorskip("datasets")
TEXT = datasets.Value("string")


def make(columns: dict[str, list[Any]], **features: Any) -> Any:
    return datasets.Dataset.from_dict(
        columns, features=datasets.Features(features) if features else None
    )


def read(dataset: Any, options: ReadOptions = GUESS) -> Any:
    hub = HubRepo("owner/name")
    return convert(table_from_hub(dataset, hub.title), "train", hub_reading(hub, "toy", options))


@pytest.fixture
def fake_hub(monkeypatch: pytest.MonkeyPatch) -> dict[tuple[str, str], Any]:
    """Splits that ``datasets.load_dataset`` will find, by repository and split."""
    stored: dict[tuple[str, str], Any] = {}

    def load(repo: str, config: str | None = None, *, split: str) -> Any:
        found = stored[repo, split]
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr("lexical_sae.text.hub.hub_answers", lambda repo, kind: True)
    monkeypatch.setattr(datasets, "load_dataset", load)
    monkeypatch.setattr(
        datasets,
        "get_dataset_split_names",
        lambda repo, config=None: [split for name, split in stored if name == repo],
    )
    monkeypatch.delenv("LEXICAL_SAE_DATA", raising=False)
    return stored


def test_class_label_names_are_used() -> None:
    data = read(
        make(
            {"sentence": ["a", "b", "c"], "label": [1, 0, 1], "idx": [5, 6, 7]},
            sentence=TEXT,
            label=datasets.ClassLabel(names=["negative", "positive"]),
            idx=datasets.Value("int32"),
        )
    )
    assert (data.texts, data.labels) == (["a", "b", "c"], [1, 0, 1])
    assert data.label_names == ("negative", "positive")
    assert data.extra == {"idx": [5, 6, 7]}
    assert data.source == "the Hugging Face hub (hub:owner/name)"
    assert data.notes == ("column 'sentence' taken as the text",)


def test_rows_without_label_are_dropped_and_noted() -> None:
    label = datasets.ClassLabel(names=["no", "yes"])
    data = read(make({"text": ["a", "b", "c"], "label": [1, -1, 0]}, text=TEXT, label=label))
    assert data.texts == ["a", "c"]
    assert data.notes == ("1 rows with label -1 or no label dropped",)
    with pytest.raises(DataError, match="none of the 1 rows has both a text and a label"):
        read(make({"text": ["a"], "label": [-1]}, text=TEXT, label=label))


def test_tags_with_names() -> None:
    sequences = datasets.Sequence(datasets.ClassLabel(names=list(CONLL_TAGS)))
    data = read(
        make(
            {"tokens": [["Ada", "Lovelace"]], "pos_tags": [[1, 2]], "ner_tags": [[1, 2]]},
            tokens=datasets.Sequence(TEXT),
            pos_tags=datasets.Sequence(datasets.Value("int8")),
            ner_tags=sequences,
        )
    )
    assert data.task == "tagging"
    assert data.label_names == CONLL_TAGS
    assert data.tags == [[1, 2]]


def test_classes_of_train_hold_for_test(fake_hub: dict[tuple[str, str], Any]) -> None:
    features = {"text": TEXT, "label": TEXT}
    fake_hub["o/n", "train"] = make({"text": ["a", "b"], "label": ["x", "m"]}, **features)
    fake_hub["o/n", "test"] = make({"text": ["c"], "label": ["x"]}, **features)
    data = load_dataset("hub:o/n", "test")
    assert (data.label_names, data.labels) == (("m", "x"), [1])
    assert load_hub("o/n", split="test").label_names == ("x",)


def test_splits_with_unknown_names(fake_hub: dict[tuple[str, str], Any]) -> None:
    fake_hub["o/n", "30k_train"] = make({"text": ["a"], "label": [1]})
    with pytest.raises(DataError, match="the splits 30k_train; none is called train"):
        load_dataset("hub:o/n")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            RuntimeError("Dataset scripts are no longer supported, but found n.py"),
            "is a script dataset, and code from the hub is never run",
        ),
        (
            datasets.exceptions.DatasetNotFoundError("Dataset 'o/n' doesn't exist"),
            "was not found on the hub or is not open to you",
        ),
        (ConnectionError("cut off"), r"the connection to the hub failed \(cut off\)"),
        (ValueError("BuilderConfig 'x' not found"), "no such configuration or split"),
        (KeyError("odd"), "could not be loaded .KeyError"),
    ],
)
def test_failures_become_one_sentence(
    fake_hub: dict[tuple[str, str], Any], error: Exception, message: str
) -> None:
    fake_hub["o/n", "train"] = error
    with pytest.raises(DataError, match=message) as caught:
        load_hub("o/n")
    assert str(caught.value).startswith("hub:o/n")
    assert "\n" not in str(caught.value)


def test_second_repository_is_tried(fake_hub: dict[tuple[str, str], Any]) -> None:
    fake_hub["legacy-datasets/banking77", "test"] = datasets.exceptions.DatasetNotFoundError("no")
    columns = {"text": ["a", "b", "c"], "label": [0, 1, 1], "label_text": ["b", "A", "A"]}
    for split in ("train", "test"):
        fake_hub["mteb/banking77", split] = datasets.Dataset.from_dict(columns)
    data = load_dataset("banking77", "test")
    assert data.source == "the Hugging Face hub (hub:mteb/banking77)"
    assert (data.label_names, data.labels) == (("A", "b"), [1, 0, 0])


def test_hub_without_plain_labels(fake_hub: dict[tuple[str, str], Any]) -> None:
    """The columns of these three are those of their cards on the hub."""
    fake_hub["google/civil_comments", "test"] = make(
        {"text": ["a", "b", "c"], "toxicity": [0.5, 0.49, 0.0]},
        text=TEXT,
        toxicity=datasets.Value("float32"),
    )
    civil = load_dataset("civil_comments", "test")
    assert [civil.label_names[i] for i in civil.labels] == ["toxic", "nontoxic", "nontoxic"]
    fake_hub["PKU-Alignment/BeaverTails", "30k_test"] = make(
        {"prompt": ["q?", "p?"], "response": ["r", "s"], "is_safe": [True, False]},
        prompt=TEXT,
        response=TEXT,
        is_safe=datasets.Value("bool"),
    )
    tails = load_dataset("beavertails", "test")
    assert tails.texts == ["q?\nr", "p?\ns"]
    assert [tails.label_names[i] for i in tails.labels] == ["safe", "unsafe"]
    fake_hub["fancyzhx/yelp_polarity", "test"] = make(
        {"text": ["a", "b"], "label": [1, 0]},
        text=TEXT,
        label=datasets.ClassLabel(names=["1", "2"]),
    )
    yelp = load_dataset("yelp", "test")
    assert [yelp.label_names[i] for i in yelp.labels] == ["positive", "negative"]


def test_no_network_is_said_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Real calls, to a port at which nobody listens."""
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(datasets.config, "HF_ENDPOINT", "http://127.0.0.1:9")
    start = time.perf_counter()
    for name in ("hub:nobody/nothing-at-all", "hub:nobody/nothing-at-all:config"):
        with pytest.raises(
            SourceUnavailableError, match="the hub cannot be reached and no earlier"
        ):
            load_dataset(name)
    assert time.perf_counter() - start < 15
    assert not datasets.config.HF_HUB_OFFLINE  # the switch is put back


def test_datasets_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(SourceUnavailableError, match=r"pip install 'lexical-sae\[data\]'"):
        load_hub("o/n")


def test_hub_entries_of_the_catalog_open_without_a_call() -> None:
    for entry in CATALOG.values():
        for hub in entry.hub:
            source = open_hub(hub, hub_reading(hub, entry.name, GUESS))
            assert "train" in source.splits
            assert (entry.name == "sst2") == ("test" not in source.splits)
