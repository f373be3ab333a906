"""The quick form of every study that `make studies` runs, as a user runs it: minutes each."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIMIT = 180  # seconds, of each
COMPARED = (
    *("ablation", "multi-dataset", "sota-comparison", "faithfulness", "bcos-ablation", "senses"),
)


def make_studies() -> list[str]:
    """The names in the Makefile's list."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    return text.split("STUDIES := ")[1].split("\n\n")[0].replace("\\", " ").split()


@pytest.mark.slow
@pytest.mark.parametrize("name", make_studies())
def test_a_quick_form_ends_within_its_limit(name: str, tmp_path: Path) -> None:
    file = ROOT / "experiments" / f"{name}.yaml"
    line = [sys.executable, "-m", "lexical_sae", "run", str(file), "--quick"]
    line += ["--output", str(tmp_path)]
    done = subprocess.run(
        line, capture_output=True, text=True, encoding="utf-8", check=False, timeout=LIMIT
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))["summary"]
    assert (tmp_path / "report.html").is_file()
    if name in COMPARED:
        assert list((tmp_path / "figures").glob("*.svg"))
