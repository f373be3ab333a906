"""Tables of an evaluation as Markdown and LaTeX, to be put into a paper or a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lexical_sae.report.finding import Cell, Estimate, Finding, FindingTable
from lexical_sae.report.latex_text import latex_text
from lexical_sae.report.shown import shown

_MARKDOWN = str.maketrans({"|": r"\|", "\n": " ", "\r": " "})


def metric_table(evaluation: Mapping[str, Any]) -> FindingTable:
    """Every number of an evaluation in one table."""
    rows: list[tuple[Cell, ...]] = []
    for step in evaluation["steps"].values():
        for name, found in step["metrics"].items():
            estimate = Estimate(**found)
            value: Cell = estimate.value
            if value is None:
                value = f"undefined: {estimate.why}"
            meaning = evaluation["metrics"][name]["meaning"]
            rows.append((step["title"], meaning, value, estimate.low, estimate.high))
    return FindingTable("All measures", ("step", "measure", "value", "from", "to"), tuple(rows))


def tables_of(evaluation: Mapping[str, Any]) -> Iterator[FindingTable]:
    yield metric_table(evaluation)
    for step in evaluation["steps"].values():
        yield from Finding.from_dict(dict(step)).tables


def markdown(tables: Sequence[FindingTable]) -> str:
    """One table below the other, each under its title."""
    parts = []
    for table in tables:
        head = "| " + " | ".join(_cell(column) for column in table.columns) + " |"
        line = "|" + "---|" * len(table.columns)
        body = ["| " + " | ".join(_cell(cell) for cell in row) + " |" for row in table.rows]
        parts.append("\n".join([f"### {_cell(table.title)}", "", head, line, *body]))
    return "\n\n".join(parts) + "\n"


def latex(tables: Sequence[FindingTable]) -> str:
    """`tabular` environments with booktabs' rules."""
    parts = []
    for table in tables:
        columns = "l" * len(table.columns)
        rows = [" & ".join(latex_text(shown(cell)) for cell in row) + r" \\" for row in table.rows]
        parts.append(
            "\n".join(
                [
                    r"\begin{table}",
                    rf"\caption{{{latex_text(table.title)}}}",
                    rf"\begin{{tabular}}{{{columns}}}",
                    r"\toprule",
                    " & ".join(latex_text(column) for column in table.columns) + r" \\",
                    r"\midrule",
                    *rows,
                    r"\bottomrule",
                    r"\end{tabular}",
                    r"\end{table}",
                ]
            )
        )
    return "\n\n".join(parts) + "\n"


def _cell(value: Cell) -> str:
    return shown(value).translate(_MARKDOWN)
