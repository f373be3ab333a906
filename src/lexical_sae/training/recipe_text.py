"""Recipes for people: what each is, in a line, and as the YAML that a config starts from."""

from __future__ import annotations

from typing import Any

from lexical_sae.training.combinations import terms_on
from lexical_sae.training.config_text import settings_text
from lexical_sae.training.expectations import nearest_key, shown
from lexical_sae.training.recipes import RECIPES
from lexical_sae.training.settings import Settings

ABOUT = {
    "default": "ours, chosen by measurement",
    "tagging": "ours for tagged words, chosen for tagged datasets",
    "cis": "Circuit-Integrated SPLADE (CIS), mended",
    "lexical-sae": "Lexical-SAE, mended",
    "cajt": "Circuit-Anchored JumpReLU Transcoder (CAJT), mended",
}


def recipe_row(name: str) -> dict[str, str]:
    """The choices that tell recipes apart, one text per column of a table."""
    settings = find_recipe(name)
    model = settings.model
    head = model.head if model.head == "linear" else f"{model.head} {model.head_width}"
    head = f"{head} × {model.head_depth}" if model.head_depth > 2 else head
    schedule = "" if settings.optimizer == "schedule_free" else f" {settings.schedule}"
    return {
        "name": name,
        "gate": model.gate,
        "saturation": model.saturation,
        "head": f"{head} + bias" if model.hidden_bias else head,
        "terms": ", ".join(_term(settings, term) for term in terms_on(settings)) or "none",
        "optimiser": f"{settings.optimizer}{schedule}",
        "epochs": f"{settings.epochs:g}",
        "target words": str(settings.target_words),
        "what it is": ABOUT[name],
    }


def recipe_text(name: str) -> str:
    """Every setting of a recipe; a config as soon as it names a dataset."""
    settings = find_recipe(name)
    return (
        f"# {name}: {ABOUT[name]}\n"
        "# To train with it add a line such as  dataset: movie_snippets\n"
        f"recipe: {name}\n"
        f"{settings_text(settings.model_dump())}"
    )


def recipe_data(name: str) -> dict[str, Any]:
    return {"recipe": name, "about": ABOUT[name], "settings": find_recipe(name).model_dump()}


def find_recipe(name: str) -> Settings:
    if name not in RECIPES:
        raise ValueError(f"{shown(name)} is no recipe; {nearest_key(name, RECIPES)}")
    return RECIPES[name]


def _term(settings: Settings, name: str) -> str:
    form = getattr(getattr(settings, name), "form", None)
    return f"{name} {form}" if form else name
