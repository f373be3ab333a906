"""The README of a model's folder, which the hub shows: what it is, how good, and what it cannot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lexical_sae.report.evaluation_page import summary
from lexical_sae.report.tables import markdown, metric_table

LIMITS = (
    "Contributions are those of this model's computation. They are exact about the model, not "
    "about the world: a word that decides here need not be a reason.",
    "Removing a word need not change the logit by minus its contribution, since hidden units may "
    "switch; the measures above say how far the two differ here.",
    "A suppressed word cannot matter, but its concept may still be told from other words.",
    "The numbers are of the split named above and say nothing of other texts.",
)


def model_card(evaluation: Mapping[str, Any], model: Mapping[str, Any]) -> str:
    """Markdown with the hub's header; `model` has name, labels, backbone, recipe."""
    identity = evaluation["identity"]
    found = {
        name: estimate
        for step in evaluation["steps"].values()
        for name, estimate in step["metrics"].items()
    }
    tagging = "entity_f1" in found
    kind = "token-classification" if tagging else "text-classification"
    measure = ("f1", "entity_f1") if tagging else ("accuracy", "accuracy")
    value = found.get(measure[1], {}).get("value")
    what = "A tagger" if tagging else "A text classifier"
    loader = "LexicalTagger" if tagging else "LexicalClassifier"
    lines = [
        "---",
        "library_name: lexical-sae",
        f"pipeline_tag: {kind}",
        "tags: [lexical-sae, interpretability, sparse]",
    ]
    if value is not None:
        lines += [
            "model-index:",
            f"- name: {_quoted(model['name'])}",
            "  results:",
            f"  - task: {{type: {kind}}}",
            f"    dataset: {{name: {_quoted(identity['dataset'])}, type: "
            f"{_quoted(identity['dataset'])}, split: {_quoted(identity['split'])}}}",
            f"    metrics: [{{type: {measure[0]}, value: {value:.4f}}}]",
        ]
    lines += [
        "---",
        "",
        f"# {model['name']}",
        "",
        f"{what} whose every decision is a short, exact sum over words (lexical-sae).",
        "",
        f"- labels: {', '.join(model['labels'])}",
        f"- backbone: `{model['backbone']}`",
        f"- recipe: {model['recipe']}",
        f"- model: sha256 `{identity['model']}`",
        f"- dictionary: sha256 `{identity['dictionary']}`",
        "",
        "```python",
        f"from lexical_sae import {loader}",
        "",
        f'model = {loader}.load("FOLDER")',
        'print(model.explain("..."))',
        "```",
        "",
        f"## Measured on {identity['dataset']}, {identity['split']} split, {identity['rows']:,} "
        f"{identity['unit']}",
        "",
        *(f"- {line}" for line in summary(evaluation)),
        "",
        markdown([metric_table(evaluation)]),
        "## Limits",
        "",
        *(f"- {line}" for line in LIMITS),
        "",
        "## Citation",
        "",
        "lexical-sae, version "
        f"{evaluation['environment']['versions']['lexical_sae']}. The explanation is the "
        "computation itself.",
    ]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """A YAML string, whatever is in it."""
    return '"' + str(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") + '"'
