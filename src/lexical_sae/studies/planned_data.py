"""The datasets of a study, as far as they are on this machine; nothing is fetched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lexical_sae.studies.grid_config import GridConfig
from lexical_sae.studies.needs import Need
from lexical_sae.studies.registry import Study
from lexical_sae.studies.strict import StudyConfig
from lexical_sae.text.dataset import TextDataset
from lexical_sae.text.errors import SourceUnavailableError
from lexical_sae.text.registry import check_name, looked_for, splits_at_hand
from lexical_sae.training.config import RunConfig
from lexical_sae.training.run import Data

Splits = Mapping[str, TextDataset]


def check_datasets(study: Study, config: StudyConfig) -> None:
    """Refuse, before anything is trained, names that no source could answer for. What is known but
    not here stops a study at once if all of it needs it; of a grid only the runs on it fail."""
    names = [need.dataset for need in study.needs(config)]
    missing: list[SourceUnavailableError] = []
    for name in dict.fromkeys([*names, *(cell.dataset for cell in study.cells(config))]):
        try:
            check_name(name)
        except SourceUnavailableError as error:
            missing.append(error)
    if missing and not isinstance(config, GridConfig):
        raise missing[0]


def splits_of_run(study: Study, study_config: Any, run: RunConfig) -> Splits | None:
    """With the rows that the study uses; None if they are not here yet."""
    columns = ("text_column", "label_column", "tokens_column", "tags_column")
    found = _at_hand(
        run.dataset,
        validation_fraction=run.validation_fraction,
        **{name: getattr(run, name) for name in columns},
    )
    if found is None:
        return None
    train = found["train"] if run.train_rows is None else found["train"].head(run.train_rows)
    used = study.rows(study_config, run, Data(train, found.get("validation"), found.get("test")))
    named = {"train": used.train, "validation": used.validation, "test": used.test}
    return {name: split for name, split in named.items() if split is not None}


def run_line(run: RunConfig, splits: Splits | None) -> str:
    if splits is None:
        return absent_line(run.dataset, "its rows and lengths are known once it is")
    sizes = {name: len(split) for name, split in splits.items()}
    unit = "sentences" if splits["train"].task == "tagging" else "texts"
    told = ", ".join(f"{size:,} {name}" for name, size in sizes.items())
    return f"{run.dataset}: {told} {unit}, {len(splits['train'].label_names)} labels"


def need_line(need: Need) -> tuple[str, bool]:
    """What is used of a dataset that is read besides, and whether it is here."""
    splits = _at_hand(need.dataset, **need.columns)
    if splits is None:
        return absent_line(need.dataset, "its rows are known once it is"), False
    try:
        return f"{need.dataset}: {need.used(splits)}", True
    except ValueError as error:
        raise ValueError(f"{need.dataset}: {error}") from None


def absent_line(name: str, end: str) -> str:
    places = looked_for(name)
    return f"{name}: not here yet{f' (looked for in {places})' * bool(places)}; {end}"


def _at_hand(name: str, **how: Any) -> dict[str, TextDataset] | None:
    check_name(name)  # one that is not here and cannot be fetched is an error, not None
    return splits_at_hand(name, **how)
