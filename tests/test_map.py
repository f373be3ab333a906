"""The map of folders: text flows downwards, and nothing imports upwards."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import lexical_sae

ROOT = Path(lexical_sae.__file__).parent
ORDER = (
    "text",
    "model",
    "attribution",
    "certify",
    "report",
    "training",
    "evaluation",
    "surgery",
    "studies",
)
FILES = sorted(ROOT.rglob("*.py"))


def _imports(file: Path) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file.name} has a relative import"
            found += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
    return [name for name in found if name.startswith("lexical_sae.")]


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(ROOT)))
def test_a_folder_imports_only_from_those_above_it(file: Path) -> None:
    folder = file.relative_to(ROOT).parts[0]
    if folder not in ORDER:
        return
    allowed = ORDER[: ORDER.index(folder) + 1]
    for name in _imports(file):
        shows = file.name in ("explanation.py", "tag_explanation.py")
        if shows and name.startswith("lexical_sae.report."):
            continue  # the display methods of explanations, when they are called
        assert name.split(".")[1] in (*allowed, "__version__"), f"{file.name} imports {name}"


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(ROOT)))
def test_files_can_be_read_in_one_sitting(file: Path) -> None:
    assert len(file.read_text().splitlines()) <= 310


def test_every_public_name_can_be_imported() -> None:
    for name in lexical_sae.__all__:
        assert getattr(lexical_sae, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        lexical_sae.nothing  # noqa: B018
