"""What all commands print with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

TopkPerPosition = Annotated[
    int | None, typer.Option(min=1, help="Keep only so many open words per token.")
]

Windows = Annotated[
    bool | None,
    typer.Option(
        "--windows/--no-windows",
        help="Read long texts whole, in overlapping windows, instead of cutting them.",
        show_default="as saved",
    ),
]

out = Console(highlight=False, soft_wrap=True, emoji=False)


def plain(text: str) -> None:
    """Data is printed as it is: brackets in a text are no markup."""
    out.print(text, markup=False)


def refuse_taken(folder: Path) -> None:
    """An output folder must be new or empty."""
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise ValueError(f"{folder} exists and is not empty; choose another --output or remove it.")
