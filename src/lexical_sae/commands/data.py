"""``lexical-sae datasets`` and ``lexical-sae data``: what there is to learn from."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from lexical_sae.commands.console import out, plain


def datasets() -> None:
    """List the datasets that can be named, and where each is looked for."""
    from lexical_sae.text import list_datasets

    table = Table(box=None, pad_edge=False)
    for heading in ("name", "task", "about", "looked for in"):
        table.add_column(heading, no_wrap=heading != "about")
    for info in list_datasets():
        table.add_row(info.name, info.task or "?", info.about, "\n".join(info.sources))
    out.print(table)


def data(
    name: Annotated[str, typer.Argument(help="A dataset's name, a file, a folder, or hub:NAME.")],
    split: Annotated[str, typer.Option(help="train, validation, test or all.")] = "train",
    rows: Annotated[int, typer.Option(min=0, help="How many examples to show.")] = 3,
    text_column: Annotated[str | None, typer.Option(help="Column of the text.")] = None,
    label_column: Annotated[str | None, typer.Option(help="Column of the label.")] = None,
) -> None:
    """Show what a dataset holds and what was guessed, dropped or cut on the way."""
    from lexical_sae.text import load_dataset

    found = load_dataset(name, split, text_column=text_column, label_column=label_column)
    plain(f"{found.name} ({found.split}): {len(found):,} rows, {found.task}")
    plain(found.source)
    for note in found.notes:
        plain(f"note: {note}")
    unit = "rows" if found.task == "classification" else "tokens"
    counts = found.label_counts()
    shown = [f"{label} {count:,}" for label, count in list(counts.items())[:12]]
    more = f", and {len(counts) - 12} more" if len(counts) > 12 else ""
    plain(f"labels ({unit}): {', '.join(shown)}{more}")
    for index in range(min(rows, len(found))):
        if found.task == "classification":
            plain(f"{index + 1}. [{found.label_names[found.labels[index]]}] {found.texts[index]}")
        else:
            pairs = zip(found.tokens[index], found.tags[index], strict=True)
            words = (f"{t}/{found.label_names[tag]}" for t, tag in pairs)
            plain(f"{index + 1}. {' '.join(words)}")
