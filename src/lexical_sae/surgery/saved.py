"""Cuts of saved runs: a new folder with the cut model; the original is only read."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from lexical_sae.model.fingerprint import model_hash
from lexical_sae.model.lexical_sae import LexicalSAE
from lexical_sae.surgery.selection import WordSelection
from lexical_sae.surgery.suppression import suppress_token_globally, suppressed_coordinates
from lexical_sae.training.environment import write_json

RECORD = "suppression.json"
KEPT = ("config.yaml", "environment.json")  # of a run, so that its data are found again


def suppress_saved(
    run: Path,
    model_folder: Path,
    output: Path,
    words: Sequence[str],
    *,
    patterns: Iterable[str] = (),
    exact: bool = False,
) -> tuple[LexicalSAE, WordSelection]:
    """A copy of a run without some words, and what was found."""
    model = LexicalSAE.from_pretrained(model_folder)
    original = model_hash(model)
    found = suppress_token_globally(model, words, patterns=patterns, exact=exact)
    assert model.dictionary is not None
    entry = {
        "of": original,
        "asked": [*found.found, *found.missing],
        "words": list(found.words(model.dictionary)),
        "not_found": list(found.missing),
    }
    _write(model, run, output, [*history(run), entry])
    return model, found


def restore_saved(run: Path, model_folder: Path, output: Path) -> tuple[LexicalSAE, int]:
    """A copy of a run with all words back, and how many they are."""
    model = LexicalSAE.from_pretrained(model_folder)
    original, back = model_hash(model), suppressed_coordinates(model)
    if not back:
        raise ValueError(f"No word is cut out of {run}, so there is nothing to restore.")
    model.restore()
    _write(model, run, output, [*history(run), {"of": original, "restored": len(back)}])
    return model, len(back)


def history(run: Path) -> list[dict[str, Any]]:
    """The cuts that led to a run, the first first."""
    file = run / RECORD
    if not file.is_file():
        return []
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except ValueError:
        raise ValueError(f"{file} is damaged; remove it to go on without its record.") from None
    return found if isinstance(found, list) else []


def _write(model: LexicalSAE, run: Path, output: Path, record: list[dict[str, Any]]) -> None:
    """The model last: a folder with a model in it is whole."""
    output.mkdir(parents=True, exist_ok=True)
    for name in KEPT:
        if (run / name).is_file():
            shutil.copyfile(run / name, output / name)
    write_json(output / RECORD, record)
    model.save_pretrained(output / "model")
