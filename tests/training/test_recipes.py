"""The recipes: what they say, that they can be printed and loaded, and that the docs are true."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from lexical_sae.commands.recipes import recipes
from lexical_sae.training.combinations import TERMS, check_combinations, terms_on
from lexical_sae.training.config import load_config, resolve_config
from lexical_sae.training.config_text import HEADINGS
from lexical_sae.training.recipe_text import ABOUT, recipe_data, recipe_row, recipe_text
from lexical_sae.training.recipes import RECIPES
from lexical_sae.training.settings import Settings
from tests.training.settings_docs import reference_rows

DOCS = Path(__file__).parents[2] / "docs" / "recipes.md"
PUBLISHED = ("cis", "lexical-sae", "cajt")
NAMES = sorted(RECIPES)

app = typer.Typer()
app.command()(recipes)


def run(*arguments: str) -> str:
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_is_valid_and_sensible(name: str) -> None:
    # model_copy(update=...) does not validate, so it is done here
    assert Settings.model_validate(RECIPES[name].model_dump(), strict=True) == RECIPES[name]
    check_combinations(RECIPES[name])


@pytest.mark.parametrize("name", NAMES)
def test_the_printed_recipe_is_a_config_once_it_has_a_dataset(name: str, tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(recipe_text(name) + "dataset: sst2\n")
    assert load_config(file) == resolve_config({"dataset": "sst2", "recipe": name})
    assert load_config(file).settings == RECIPES[name]


@pytest.mark.parametrize("name", NAMES)
def test_the_command_prints_one_recipe(name: str) -> None:
    assert run(name) == recipe_text(name)
    assert json.loads(run(name, "--json")) == json.loads(json.dumps(recipe_data(name)))


def test_the_command_lists_all_of_them() -> None:
    text = run()
    for name in NAMES:
        assert name in text
    for heading in recipe_row("default"):
        assert heading in text
    assert "…" not in text  # nothing is cut, whatever the width of the terminal
    assert [one["recipe"] for one in json.loads(run("--json"))] == list(RECIPES)


def test_an_unknown_recipe_gets_the_nearest_name() -> None:
    with pytest.raises(ValueError, match="'cjat' is no recipe; did you mean 'cajt'"):
        run("cjat")


def test_the_command_is_imported_without_pydantic_and_torch() -> None:
    code = (
        "import sys, lexical_sae.commands.recipes\n"
        "print([name for name in ('torch', 'pydantic', 'yaml') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_every_recipe_and_every_heading_is_known() -> None:
    assert set(ABOUT) == set(RECIPES)
    assert set(HEADINGS) <= set(Settings.model_fields)
    assert set(TERMS) == {
        *("completeness", "separation", "sharpness", "sparsity"),
        *("frequency", "anchor", "content"),
    }


# What the documents of the published systems say. A default of Settings that is tuned for our own
# recipe must not change theirs unseen.
_ALL_THREE = {
    **{"circuit_fraction": 0.1, "warmup_fraction": 0.2, "label_smoothing": 0.1},
    **{"epochs": 50, "early_stopping": 10, "gradient_centralisation": True, "constraint": True},
    **{"head_rate_factor": 1, "learning_rate_warmup": 0.06, "dropout": None, "anchor": None},
    **{"content": None, "freeze_embeddings": False, "batch_size": None, "max_length": None},
}
_FIRST_TWO = {
    **{"optimizer": "adamw", "schedule": "cosine", "weight_decay": 0.01, "learning_rate": 3e-5},
    **{"learning_rate_range_test": True, "weight_average": 0.999, "frequency": None},
}
_OWN = {
    "cis": {**_FIRST_TWO, "weighting": "uncertainty", "gate_rate_factor": 1},
    "lexical-sae": {**_FIRST_TWO, "weighting": "sum", "gate_rate_factor": 5, "sharpness": None},
    "cajt": {
        **{"optimizer": "schedule_free", "schedule": "constant", "learning_rate": 3e-4},
        **{"learning_rate_range_test": False, "weight_average": None, "weighting": "sum"},
        **{"sharpness": None, "gate_rate_factor": 1},
    },
}
_MODEL = {
    "cis": {"gate": "shift", "saturation": "log1p"},
    "lexical-sae": {"gate": "shift", "saturation": "log1p"},
    "cajt": {"gate": "jump", "saturation": "none", "window": "sigmoid"},
}
_FORMS = {
    "cis": {
        "completeness": "ce",
        "separation": "cosine",
        "sharpness": None,
        "sparsity": "df_flops",
    },
    "lexical-sae": {"completeness": "ce", "separation": "cosine", "sparsity": "l1_l0"},
    "cajt": {
        **{"completeness": "kl", "separation": "contrastive", "sparsity": "gate"},
        **{"frequency": None},
    },
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_recipes_follow_their_documents(name: str) -> None:
    settings = RECIPES[name]
    for key, value in {**_ALL_THREE, **_OWN[name]}.items():
        assert getattr(settings, key) == value, key
    model = {"pooling": "max", "head": "mlp", "head_width": 256, "hidden_bias": True}
    for key, option in {**model, **_MODEL[name]}.items():
        assert getattr(settings.model, key) == option, key
    forms = {term: getattr(getattr(settings, term), "form", None) for term in terms_on(settings)}
    assert forms == _FORMS[name]
    for term in terms_on(settings):
        assert getattr(settings, term).weight == 1
    assert 100 <= settings.target_words <= 200


def test_constants_of_the_published_terms() -> None:
    cis, cajt = RECIPES["cis"], RECIPES["cajt"]
    assert cis.separation is not None
    assert cis.separation.decay == pytest.approx(1 - 2 / 21)
    assert cajt.separation is not None
    assert (cajt.separation.margin, cajt.separation.learn_margin) == (0.1, True)
    assert cajt.frequency is not None
    assert (cajt.frequency.decay, cajt.frequency.cutoff) == (0.99, 0.1)
    assert cajt.weight_decay == pytest.approx(0.1 * cajt.learning_rate)
    assert cajt.model.window_width >= 0.1  # 0.001 passes almost no gradient


def test_published_recipes_use_the_whole_vocabulary() -> None:
    assert {RECIPES[name].model.dictionary for name in PUBLISHED} == {"all"}


def test_the_docs_have_every_setting_with_its_range_and_default() -> None:
    """After a change of settings.py: put the row that is missing into docs/recipes.md."""
    section, found = "", dict[str, list[str]]()
    reference = DOCS.read_text().partition("\n## Settings")
    for line in "".join(reference[1:]).splitlines():
        if line.startswith("#"):
            section = line.lstrip("# ")
        elif line.startswith("| `"):
            cells = line.split(" | ")
            assert len(cells) == 4, line
            assert len(cells[3]) > 5, f"{line} says nothing"
            found.setdefault(section, []).append(" | ".join(cells[:3]) + " |")
    assert found == reference_rows()


def test_the_docs_have_a_section_for_every_recipe() -> None:
    lines = DOCS.read_text().splitlines()
    for name in RECIPES:
        assert f"## {name}" in lines


def test_the_example_in_the_docs_loads(tmp_path: Path) -> None:
    text = DOCS.read_text().split("```yaml\n")[1].split("```")[0]
    file = tmp_path / "run.yaml"
    file.write_text(text)
    settings = load_config(file).settings
    assert settings.completeness is not None
    assert settings.completeness.weight == 2
    assert settings.frequency is None
    assert settings.sharpness is not None
    assert settings.model.pooling == "attention"
