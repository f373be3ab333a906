"""`lexical-sae recipes`: which recipes there are, and one of them in full."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.table import Table

from lexical_sae.commands.console import out, plain

WIDTH = 136  # of the table; a narrower terminal wraps its lines rather than losing columns


def recipes(
    name: Annotated[str | None, typer.Argument(help="A recipe, to print it in full.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of a table.")] = False,
) -> None:
    """List the training recipes, or print one as YAML to start a config from."""
    # here, not above: pydantic would slow every --help
    from lexical_sae.training.recipe_text import recipe_data, recipe_row, recipe_text
    from lexical_sae.training.recipes import RECIPES

    if name is not None:
        # print, not the console: nothing may wrap what is piped into a file
        text = recipe_text(name)
        print(json.dumps(recipe_data(name)) if as_json else text, end="\n" if as_json else "")
        return
    if as_json:
        print(json.dumps([recipe_data(one) for one in RECIPES]))
        return
    rows = [recipe_row(one) for one in RECIPES]
    table = Table(box=None, pad_edge=False, width=WIDTH)
    for heading in rows[0]:
        table.add_column(heading, no_wrap=heading != "what it is")
    for row in rows:
        table.add_row(*{**row, "terms": row["terms"].replace(", ", "\n")}.values())
    out.print(table)
    plain("lexical-sae recipes NAME prints one in full; docs/recipes.md says what was mended.")
