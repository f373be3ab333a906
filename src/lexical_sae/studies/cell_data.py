"""The rows of a cell: what is trained on, what may stop the training, what is measured on."""

from __future__ import annotations

from dataclasses import dataclass

from lexical_sae.evaluation.reading import spread
from lexical_sae.text.dataset import TextDataset
from lexical_sae.text.splits import cut_dataset
from lexical_sae.training.config import RunConfig
from lexical_sae.training.run import Data, load_data


@dataclass(frozen=True)
class Rows:
    """How many rows of a dataset a study uses, evenly spread: files may be sorted by class."""

    train: int | None = None
    held_out: int | None = None  # of validation and of test


def load_cell_data(config: RunConfig, rows: Rows) -> Data:
    """All three splits. A dataset whose test split has no labels (SST-2) is measured on its
    validation split, and what may stop the training is cut from the training rows instead: no run
    is chosen by the rows that it is measured on."""
    return cell_rows(config, load_data(config), rows)


def cell_rows(config: RunConfig, found: Data, rows: Rows) -> Data:
    """The same of splits that have been read; a plan counts them without loading anything."""
    train, validation, test = found.train, found.validation, found.test
    if test is None:
        if validation is None:
            raise ValueError(
                f"{config.dataset} has a training split only; expected a test split or a "
                "validation split to measure on."
            )
        test = validation
        train, validation = cut_dataset(train, config.validation_fraction, 0, "validation")
    held_out = None if validation is None else some_rows(validation, rows.held_out)
    return Data(some_rows(train, rows.train), held_out, some_rows(test, rows.held_out))


def some_rows(data: TextDataset, rows: int | None) -> TextDataset:
    return data if rows is None else data.select(spread(len(data), rows))
