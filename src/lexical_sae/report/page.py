"""HTML pages: one file, no script, no network, nothing inline that the policy does not name."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).parent / "templates"


@cache
def environment() -> Environment:
    """Everything that is filled in is escaped: a text is an attacker's."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def style() -> str:
    return (TEMPLATES / "page.css").read_text(encoding="utf-8")


def content_security_policy() -> str:
    """Nothing may load or run; the one style sheet is named by its hash."""
    digest = base64.b64encode(hashlib.sha256(style().encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def render(template: str, **values: Any) -> str:
    return environment().get_template(template).render(**values)


def page(title: str, lead: str, articles: Sequence[str]) -> str:
    """A whole document around articles, which come out of another template."""
    if not articles:
        raise ValueError("There are no explanations to show; expected at least one.")
    return render(
        "page.html",
        title=title,
        lead=lead,
        body="\n".join(articles),
        style=style(),
        policy=content_security_policy(),
    )


def fragment(article: str) -> str:
    """An article for a notebook: the style holds inside of it only."""
    inside = style().replace(":root {", "& {").replace("body {", "& {")
    return f'<div class="lexical-sae"><style>.lexical-sae {{\n{inside}}}</style>{article}</div>'
