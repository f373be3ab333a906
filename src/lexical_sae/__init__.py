"""lexical-sae: text classifiers and taggers whose every decision is a short, exact sum over words.

Names are imported when first used, so that `import lexical_sae` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from lexical_sae.attribution.circuits import circuit_mask as circuit_mask
    from lexical_sae.attribution.contributions import (
        compute_attribution_tensor as compute_attribution_tensor,
    )
    from lexical_sae.attribution.explain import explain as explain
    from lexical_sae.attribution.explain import explain_many as explain_many
    from lexical_sae.attribution.explanation import Explanation as Explanation
    from lexical_sae.attribution.golden import assert_explanation as assert_explanation
    from lexical_sae.attribution.tag_explanation import TagExplanation as TagExplanation
    from lexical_sae.attribution.tags import explain_tags as explain_tags
    from lexical_sae.attribution.verify import verify_sum as verify_sum
    from lexical_sae.estimators import LexicalClassifier as LexicalClassifier
    from lexical_sae.estimators import LexicalTagger as LexicalTagger
    from lexical_sae.model.config import LexicalSAEConfig as LexicalSAEConfig
    from lexical_sae.model.lexical_sae import LexicalSAE as LexicalSAE
    from lexical_sae.model.open_words import OpenWords as OpenWords
    from lexical_sae.model.state import CircuitState as CircuitState
    from lexical_sae.surgery.fairness import evaluate_bias as evaluate_bias
    from lexical_sae.surgery.suppression import SuppressedModel as SuppressedModel
    from lexical_sae.surgery.suppression import suppress_token_globally as suppress_token_globally
    from lexical_sae.text import load_dataset as load_dataset
    from lexical_sae.training.geco import GECOController as GECOController
    from lexical_sae.training.trainer import LexicalTrainer as LexicalTrainer

_HOMES = {
    "GECOController": "lexical_sae.training.geco",
    "LexicalClassifier": "lexical_sae.estimators",
    "LexicalTagger": "lexical_sae.estimators",
    "LexicalTrainer": "lexical_sae.training.trainer",
    "CircuitState": "lexical_sae.model.state",
    "Explanation": "lexical_sae.attribution.explanation",
    "assert_explanation": "lexical_sae.attribution.golden",
    "explain": "lexical_sae.attribution.explain",
    "explain_many": "lexical_sae.attribution.explain",
    "explain_tags": "lexical_sae.attribution.tags",
    "TagExplanation": "lexical_sae.attribution.tag_explanation",
    "LexicalSAE": "lexical_sae.model.lexical_sae",
    "LexicalSAEConfig": "lexical_sae.model.config",
    "SuppressedModel": "lexical_sae.surgery.suppression",
    "suppress_token_globally": "lexical_sae.surgery.suppression",
    "evaluate_bias": "lexical_sae.surgery.fairness",
    "OpenWords": "lexical_sae.model.open_words",
    "circuit_mask": "lexical_sae.attribution.circuits",
    "compute_attribution_tensor": "lexical_sae.attribution.contributions",
    "load_dataset": "lexical_sae.text",
    "verify_sum": "lexical_sae.attribution.verify",
}

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'lexical_sae' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
