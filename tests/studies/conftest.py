"""What the studies are tested with: a tiny backbone and small data, in files."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from lexical_sae.studies import grid
from lexical_sae.training.config import RunConfig
from tests.text.conftest import write_columns
from tests.training.small import save_backbone, small_dataset


class StudyFiles:
    """Writes study files on small data."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data, self.backbone = folder / "data", folder / "backbone"
        save_backbone(self.backbone)
        self.data.mkdir()
        for split, rows, seed in (("train", 96, 0), ("validation", 40, 1), ("test", 48, 2)):
            found = small_dataset(rows, seed)
            names = [found.label_names[label] for label in found.labels]
            write_columns(self.data / f"{split}.csv", {"text": found.texts, "label": names})

    def without_test(self, folder: Path) -> Path:
        """A copy of the data that has no test split."""
        data = folder / "data"
        data.mkdir()
        for split in ("train", "validation"):
            shutil.copy(self.data / f"{split}.csv", data)
        return data

    def write(self, study: str, **changes: Any) -> Path:
        train = {
            "text_column": "text",
            "label_column": "label",
            "epochs": 1,
            "batch_size": 16,
            "target_words": 4,
            "start_words": 16,
            "learning_rate": 3e-3,
        }
        if study == "sparsity_frontier":
            del train["target_words"]  # its arms have their own
        given = {
            "study": study,
            "datasets": [str(self.data)],
            "backbones": [str(self.backbone)],
            **changes,
            "train": {**train, **changes.get("train", {})},
        }
        file = self.folder / f"{study}{len(list(self.folder.glob('*.yaml')))}.yaml"
        file.write_text(yaml.safe_dump(given, sort_keys=False), encoding="utf-8")
        return file


def fail_twins(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on a dense twin runs out of memory; everything else is trained."""
    really = grid.trained_run

    def no_twin(config: RunConfig, *rest: Any) -> Any:
        if config.dense_twin:
            raise MemoryError
        return really(config, *rest)

    monkeypatch.setattr(grid, "trained_run", no_twin)


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> StudyFiles:
    return StudyFiles(tmp_path_factory.mktemp("studies"))
