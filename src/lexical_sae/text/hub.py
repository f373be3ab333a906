"""Datasets of the Hugging Face hub, through the ``datasets`` package; no code from the hub runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from lexical_sae.text.columns import GUESS, ReadOptions, choose_columns
from lexical_sae.text.convert import Reading, convert, fix_classes
from lexical_sae.text.dataset import TextDataset
from lexical_sae.text.errors import DataError, SourceUnavailableError
from lexical_sae.text.source import SPLIT_ALIASES, Source
from lexical_sae.text.table import Table

PROBE_SECONDS = 5.0


@dataclass(frozen=True)
class HubRepo:
    """A repository on the hub and what its splits are called there."""

    repo: str
    config: str | None = None
    splits: tuple[tuple[str, str], ...] = ()
    """(our split, split on the hub); empty means: ask the hub."""
    prepare: Callable[[Table], Table] | None = None
    """Make text and label columns where the repository has none."""

    @property
    def title(self) -> str:
        return f"hub:{self.repo}" + (f":{self.config}" if self.config else "")


def load_hub(
    repo: str,
    config: str | None = None,
    split: str = "train",
    options: ReadOptions = GUESS,
) -> TextDataset:
    """One split as the hub has it; ``split`` is the hub's own name for it."""
    hub = HubRepo(repo, config, ((split, split),))
    return open_hub(hub, hub_reading(hub, repo, options)).load(split)


def hub_reading(hub: HubRepo, name: str, options: ReadOptions) -> Reading:
    """How hub rows are read: rows without a label are dropped, since hubs keep hidden test sets."""
    return Reading(name, f"the Hugging Face hub ({hub.title})", options, lenient=True)


def open_hub(hub: HubRepo, reading: Reading) -> Source:
    """A repository as a source; :class:`SourceUnavailableError` if the hub does not answer."""
    splits = dict(hub.splits) or _ask_splits(hub)

    def fetch(split: str) -> Table:
        loaded = _call_hub(
            hub,
            lambda: _import_datasets().load_dataset(hub.repo, hub.config, split=splits[split]),
        )
        table = table_from_hub(loaded, f"{hub.title} ({splits[split]})")
        return hub.prepare(table) if hub.prepare else table

    def load(split: str) -> TextDataset:
        table = fetch(split)
        fixed = reading
        named = choose_columns(table, reading.options).targets in table.class_names
        if split != "train" and "train" in splits and reading.open_classes and not named:
            fixed = fix_classes(fetch("train"), reading)
        return convert(table, split, fixed)

    return Source(hub.title, tuple(splits), load)


def table_from_hub(dataset: Any, origin: str) -> Table:
    """A ``datasets.Dataset`` as a table, with the names its ClassLabel features carry."""
    names: dict[str, tuple[str, ...]] = {}
    for column, feature in dataset.features.items():
        inner = getattr(feature, "feature", feature)
        if getattr(inner, "names", None):
            names[column] = tuple(str(name) for name in inner.names)
    columns = {column: list(dataset[column]) for column in dataset.column_names}
    return Table(origin, columns, class_names=names)


def _import_datasets() -> Any:
    try:
        import datasets
    except ImportError:
        raise SourceUnavailableError(
            "the hub needs the package 'datasets', which is not installed; run "
            "pip install 'lexical-sae[data]'."
        ) from None
    return datasets


def _ask_splits(hub: HubRepo) -> dict[str, str]:
    datasets = _import_datasets()
    names: Sequence[str] = _call_hub(
        hub, lambda: datasets.get_dataset_split_names(hub.repo, hub.config)
    )
    splits: dict[str, str] = {}
    for name in names:
        if name.lower() in SPLIT_ALIASES:
            splits.setdefault(SPLIT_ALIASES[name.lower()], name)
    if not splits:
        raise DataError(
            f"{hub.title} has the splits {', '.join(names)}; none is called train, validation or "
            "test, so load one by load_hub(repo, split=...)."
        )
    return splits


def _call_hub(hub: HubRepo, call: Callable[[], Any]) -> Any:
    """``call`` with the hub's many ways to fail turned into one sentence each."""
    _import_datasets()
    reachable = hub_answers(hub.repo, "dataset")
    try:
        if reachable:
            return call()
        with _offline():  # the copy of an earlier download will do
            return call()
    except DataError:
        raise
    except Exception as error:
        raise _explain(hub, error, reachable) from None


def hub_answers(repo: str, repo_type: str) -> bool:
    """Ask once, briefly: the hub's clients retry for up to a minute without a network."""
    from huggingface_hub import HfApi, constants

    if constants.HF_HUB_OFFLINE:
        return False
    try:
        HfApi().repo_info(repo, repo_type=repo_type, timeout=PROBE_SECONDS)
    except Exception as error:
        # An answer, even a refusal, means that the hub is there; the download will say the rest.
        return getattr(error, "response", None) is not None
    return True


@contextmanager
def _offline() -> Iterator[None]:
    import datasets
    from huggingface_hub import constants

    switches: tuple[Any, ...] = (datasets.config, constants)
    before = [switch.HF_HUB_OFFLINE for switch in switches]
    for switch in switches:
        switch.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        for switch, value in zip(switches, before, strict=True):
            switch.HF_HUB_OFFLINE = value


def _explain(hub: HubRepo, error: Exception, reachable: bool) -> DataError:
    said = " ".join(str(error).split())[:160]
    kind = type(error).__name__
    if not reachable:
        return SourceUnavailableError(
            f"{hub.title}: the hub cannot be reached and no earlier download is in its cache; "
            "connect to the network, or use a local file."
        )
    if "scripts are no longer supported" in said:
        return SourceUnavailableError(
            f"{hub.title} is a script dataset, and code from the hub is never run; use a copy "
            "of it in parquet or a local file."
        )
    if kind in ("DatasetNotFoundError", "RepositoryNotFoundError", "GatedRepoError"):
        return SourceUnavailableError(
            f"{hub.title} was not found on the hub or is not open to you; check the spelling, or "
            "log in with `hf auth login`."
        )
    if "config" in said.lower() and isinstance(error, ValueError):
        return DataError(f"{hub.title}: the hub has no such configuration or split ({said}).")
    if isinstance(error, (ConnectionError, TimeoutError)):
        return SourceUnavailableError(f"{hub.title}: the connection to the hub failed ({said}).")
    return DataError(f"{hub.title} could not be loaded ({kind}: {said}).")
