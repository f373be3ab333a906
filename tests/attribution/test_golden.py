"""A golden explanation: the same model and text give the same words, positions and numbers.

`python -m tests.attribution.test_golden` writes the file anew, for a change that is meant.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lexical_sae.attribution.contributions import compute_attribution_tensor
from tests.tiny import tiny_model

GOLDEN = Path(__file__).parents[1] / "golden" / "tiny_explanation.json"
TEXT = "her music often becomes slow and dull."


def explanation() -> dict[str, Any]:
    model = tiny_model("deberta-v2")
    encoded = model.encode([TEXT])
    state = model.classify(**encoded.model_inputs())
    label = int(state.predicted)
    contributions = compute_attribution_tensor(state, label).tolist()
    open_words = state.open_words
    return {
        "text": TEXT,
        "label": model.config.labels[label],
        "logit": float(state.logits[0, label].detach()),
        "bias": float(state.b_eff[0, label].detach()),
        "words": [
            {
                "word": model.dictionary.words[word],
                "from": TEXT[slice(*encoded.offsets[0][position])].strip(),
                "contribution": contribution,
            }
            for word, position, contribution in zip(
                open_words.word.tolist(), open_words.position.tolist(), contributions, strict=True
            )
        ],
    }


def test_the_explanation_is_the_golden_one() -> None:
    found, golden = explanation(), json.loads(GOLDEN.read_text())
    for key in ("text", "label"):
        assert found[key] == golden[key]
    for key in ("logit", "bias"):
        assert found[key] == pytest.approx(golden[key], abs=1e-5)
    assert len(found["words"]) == len(golden["words"])
    for mine, theirs in zip(found["words"], golden["words"], strict=True):
        assert (mine["word"], mine["from"]) == (theirs["word"], theirs["from"])
        assert mine["contribution"] == pytest.approx(theirs["contribution"], abs=1e-5)
    total = sum(word["contribution"] for word in golden["words"]) + golden["bias"]
    assert total == pytest.approx(golden["logit"], abs=1e-5)


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps(explanation(), indent=1, ensure_ascii=False) + "\n")
