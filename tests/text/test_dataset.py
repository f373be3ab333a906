"""The dataset itself, checked without any file."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

from lexical_sae.text import DataError, TextDataset, check_dataset

GOOD = TextDataset(
    name="toy",
    split="train",
    task="classification",
    label_names=("bad", "good"),
    texts=["awful", "lovely", "fine"],
    labels=[0, 1, 1],
    extra={"id": ["x", "y", "z"]},
)
TAGGED = TextDataset(
    name="toy",
    split="train",
    task="tagging",
    label_names=("O", "B-PER", "I-PER"),
    tokens=[["Ada", "Lovelace", "wrote"], ["Yes"]],
    tags=[[1, 2, 0], [0]],
)


def test_select_and_head_keep_rows_together() -> None:
    picked = GOOD.select([2, 0])
    assert (picked.texts, picked.labels, picked.extra["id"]) == (
        *(["fine", "awful"], [1, 0], ["z", "x"]),
    )
    assert GOOD.head(2).texts == ["awful", "lovely"]
    assert len(GOOD.head(99)) == 3
    assert TAGGED.head(1).tags == [[1, 2, 0]]


def test_label_counts() -> None:
    assert GOOD.label_counts() == {"bad": 1, "good": 2}
    assert TAGGED.label_counts() == {"O": 2, "B-PER": 1, "I-PER": 1}


def test_good_data_passes() -> None:
    check_dataset(GOOD, training=True)
    check_dataset(TAGGED, training=True)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (replace(GOOD, texts=["awful", " \n", "fine"]), r"toy \(train\), row 2: the text is empty"),
        (replace(GOOD, labels=[0, 1, 2]), "row 3: label 2 is not a position in the 2 label names"),
        (replace(GOOD, texts=["awful", "x\ud800", "fine"]), "row 2: .* half a character"),
        (replace(GOOD, labels=[0, 1]), "3 texts and 2 labels"),
        (replace(GOOD, labels=[1, 1, 1]), "all 3 rows have the one class 'good'"),
        (replace(GOOD, extra={"id": [1]}), "column 'id' has 1 values for 3 rows"),
        (GOOD.select([]), "has no rows"),
        (replace(TAGGED, tags=[[1, 2, 0], [2]]), r"row 2: the tags are not IOB2 at token 1 \('Yes"),
        (replace(TAGGED, tags=[[1, 2, 0], []]), "row 2: 1 tokens but 0 tags"),
        (replace(TAGGED, tags=[[1, 2, 0], [7]]), r"row 2: tag 7 of token 1 \('Yes'\)"),
        (replace(TAGGED, tokens=[["Ada", "", "wrote"], ["Yes"]]), "row 1: token 2 is empty"),
        (replace(TAGGED, tokens=[[], ["Yes"]], tags=[[], [0]]), "row 1: the sentence has no tok"),
        (replace(TAGGED, tags=[[0]]), "2 token lists and 1 tag lists"),
    ],
)
def test_bad_data_is_refused(data: TextDataset, message: str) -> None:
    with pytest.raises(DataError, match=message):
        check_dataset(data, training=True)


def test_one_class_is_fine_outside_training() -> None:
    check_dataset(replace(GOOD, labels=[1, 1, 1]))


def test_import_is_light() -> None:
    code = (
        "import sys, lexical_sae.text; "
        "print([m for m in ('torch', 'transformers', 'pyarrow', 'datasets') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
