"""A golden explanation: the same model and text give the same words, places and numbers.

`python -m tests.attribution.test_golden` writes the file anew, for a change that is meant.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lexical_sae import LexicalSAE, assert_explanation, explain
from tests.tiny import tiny_model

GOLDEN = Path(__file__).parents[1] / "golden" / "tiny_explanation.json"
TEXT = "her music often becomes slow and dull."


def golden_model() -> LexicalSAE:
    return tiny_model("deberta-v2", head_width=64)  # said here, so that no default changes it


def test_the_explanation_is_the_golden_one() -> None:
    # contributions that are equal to the last digit may change places from machine to machine
    assert_explanation(
        golden_model(), TEXT, GOLDEN, top=100, rank_tolerance=1, value_tolerance=1e-5
    )


def test_the_golden_numbers_add_up_and_point_into_the_text() -> None:
    golden = json.loads(GOLDEN.read_text())
    for view in ("vocabulary", "words", "spans"):
        total = sum(part["contribution"] for part in golden[view]) + golden["bias"]
        assert total == pytest.approx(golden["logit"], abs=1e-5)
    for entry in golden["vocabulary"]:
        place = entry["from"]
        assert TEXT[place["start"] : place["end"]] == place["text"]


if __name__ == "__main__":
    found = explain(golden_model(), TEXT).to_json(indent=1)
    GOLDEN.write_text(found + "\n")
