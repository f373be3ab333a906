"""An evaluation as one HTML file: what a manager reads in a minute, then every step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from lexical_sae.report.bar_chart import bar_chart, bars_of
from lexical_sae.report.dot_chart import dot_chart
from lexical_sae.report.finding import Finding, FindingTable
from lexical_sae.report.line_chart import line_chart
from lexical_sae.report.page import page, render
from lexical_sae.report.shown import shown

# What is drawn of a step that has no curve: the first of these columns that a table of it has, with
# the value that fills the width (None: the largest).
FIGURES: dict[str, dict[str, float | None]] = {
    "task": {"right, %": 100, "F1, %": 100},
    "identity": {"of the bound, %": 100},
    "circuits": {"words in the circuit": None},
    "completeness": {"KL": None},  # what is left where agreement says nothing
    "separation": {"cosine": 1},
    "explainers": {"NAOPC": 1},
    "input": {"NAOPC": 1, "NAOPC of the orders tried": 1},
    "layers": {"mean": None},
    "autoencoder": {"decisions kept, %": 100},
    "scaling": {"cross-entropy": None},
    "plausibility": {"AUPRC": 1},
    "stability": {"1 − cosine": None},
    "drift": {"from words of the text, %": 100},
}
GOOD = {"higher": "high", "lower": "low", "neither": ""}


def evaluation_page(evaluation: Mapping[str, Any], title: str = "Is the explanation true?") -> str:
    """`evaluation` is what evaluation.json holds."""
    meanings = evaluation["metrics"]
    identity = evaluation["identity"]
    articles = [render("evaluation_summary.html", lines=summary(evaluation))]
    articles += [
        step_article(step, meanings, FIGURES.get(name, {}))
        for name, step in evaluation["steps"].items()
    ]
    config = evaluation.get("config")
    articles.append(record_article(identity, evaluation["environment"], config))
    lead = (
        f"{identity['dataset']}, {identity['split']} split, {identity['rows']:,} {identity['unit']}"
    )
    return page(title, lead, articles)


def record_article(
    identity: Mapping[str, Any],
    environment: Mapping[str, Any],
    config: Mapping[str, Any] | None = None,
) -> str:
    """What the numbers are of: hashes and options, the versions that they came from, and how the
    model was trained if that is known."""
    versions = environment["versions"].items()
    return render(
        "evaluation_record.html",
        identity=[(name, str(value)) for name, value in identity.items()],
        versions=sorted((name, version) for name, version in versions if version),
        config=list(_flat(config or {})),
    )


def _flat(config: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    """Every value under its name, parts of a part joined by dots."""
    for name, value in config.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield before + name, "" if value is None else str(value)


def summary(evaluation: Mapping[str, Any]) -> list[str]:
    """One sentence for each thing that a reader must know, from the numbers that there are."""
    found = {
        name: estimate
        for step in evaluation["steps"].values()
        for name, estimate in step["metrics"].items()
        if estimate["value"] is not None
    }

    def at(name: str) -> float:
        return float(found[name]["value"])

    lines = []
    if "accuracy" in found and "open_words" in found:
        lines.append(
            f"It is right on {100 * at('accuracy'):.1f} % of the texts "
            f"({100 * found['accuracy']['low']:.1f} to {100 * found['accuracy']['high']:.1f}), "
            f"and decides by {at('open_words'):.0f} words each."
        )
    if "entity_f1" in found:
        lines.append(
            f"Its entities have an F1 of {100 * at('entity_f1'):.1f} % "
            f"({100 * found['entity_f1']['low']:.1f} to {100 * found['entity_f1']['high']:.1f}), "
            f"and {100 * at('token_accuracy'):.1f} % of its tags are right; it decides by "
            f"{at('open_words'):.0f} words each."
        )
    if "residual_max" in found:
        failed = evaluation["steps"]["identity"]["failed"]
        lines.append(
            f"The sums do not all add up: {failed}."
            if failed
            else "Every explanation adds up to its logit; the largest error is "
            f"{at('residual_max'):.0e}, which is rounding."
        )
    if "agreement_at_10" in found:
        lines.append(
            f"A tenth of the words, on their own, keep {100 * at('agreement_at_10'):.1f} % of the "
            "decisions."
        )
    if "naopc" in found:
        lines.append(
            f"Removing words in the order of the explanation is {100 * at('naopc'):.0f} % of the "
            "way from the worst to the best order that this model allows."
        )
    if "removal_correlation" in found:
        lines.append(
            "What a word is said to give and what is lost without it agree with a correlation of "
            f"{at('removal_correlation'):.3f}."
        )
    if "ece" in found:
        lines.append(f"Its probabilities are off by {100 * at('ece'):.1f} points on average.")
    return [*lines, *evaluation.get("notes", ())]


def step_article(
    step: Mapping[str, Any],
    meanings: Mapping[str, Any],
    drawn: Mapping[str, float | None] = MappingProxyType({}),
) -> str:
    """One step with its numbers, figures, tables, worst cases and notes; `drawn` are columns
    of which bars are drawn where there is no curve, each with the value that fills the width."""
    finding = Finding.from_dict(dict(step))
    charts = [
        *(dot_chart(plot) for plot in finding.dots),
        *(line_chart(curve) for curve in finding.curves),
    ]
    if not charts:
        bars = (bars_of(table, drawn) for table in finding.tables)
        charts = [bar_chart(found) for found in bars if found is not None]
    metrics = [
        {
            "name": name,
            "meaning": meanings[name]["meaning"],
            "value": shown(estimate.value) or f"undefined: {estimate.why}",
            "interval": _interval(estimate.low, estimate.high),
            "better": GOOD[meanings[name]["better"]],
        }
        for name, estimate in finding.metrics.items()
    ]
    return render(
        "evaluation_step.html",
        step={
            "title": step["title"],
            "question": step["question"],
            "failed": finding.failed,
            "metrics": metrics,
            "charts": charts,
            "tables": [_table(table) for table in finding.tables],
            "worst": [
                [(name, shown(value)) for name, value in case.items()] for case in finding.worst
            ],
            "notes": finding.notes,
            "seconds": f"{step['seconds']:.1f} seconds",
        },
    )


def _table(table: FindingTable) -> dict[str, Any]:
    numbers = {
        i
        for i in range(len(table.columns))
        if all(not isinstance(row[i], str) for row in table.rows)
    }
    return {
        "title": table.title,
        "columns": table.columns,
        "rows": [[shown(cell) for cell in row] for row in table.rows],
        "numbers": numbers,
    }


def _interval(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{shown(low)} to {shown(high)}"
