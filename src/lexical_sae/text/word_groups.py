"""Groups of words in YAML files: a section, below it a name per group, below that its words."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lexical_sae.text.yaml_text import read_yaml


def read_groups(
    path: Path, section: str, keys: tuple[str, ...], texts: tuple[str, ...] = ("description",)
) -> Iterator[tuple[str, dict[str, Any], str]]:
    """(name, the group's entries, where it stands) of each group; `keys` are those it may have,
    `texts` those of them that are for people only."""
    if not path.is_file():
        raise ValueError(f"{path} was not found; expected a YAML file with {section}.")
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8 text; expected a YAML file.") from None
    found = read_yaml(text, str(path))
    if not isinstance(found, dict):
        raise ValueError(f"{path} holds no mapping; expected {section}: with a name per group.")
    _known(found, (section,), str(path))
    groups = found.get(section)
    if not isinstance(groups, dict) or not groups:
        raise ValueError(f"{path}: {section} is empty; expected a mapping with a name per group.")
    for name, group in groups.items():
        where = f"{path}: {section}.{name}"
        if not isinstance(group, dict):
            raise ValueError(f"{where} is no mapping; expected {', '.join(keys)} below it.")
        _known(group, keys, where)
        for key in texts:
            if not isinstance(group.get(key, ""), str):
                raise ValueError(f"{where}: {key} is {group[key]!r}; expected text.")
        yield str(name), group, where


def group_words(group: dict[str, Any], where: str) -> tuple[str, ...]:
    """The words of a group."""
    words = group.get("words")
    if not isinstance(words, list) or not words:
        raise ValueError(f"{where}: words is {words!r}; expected a list of words.")
    for word in words:
        if not isinstance(word, str) or not word.strip():
            raise ValueError(f"{where}: {word!r} is no word; expected text, in quotes if need be.")
    return tuple(word.strip() for word in words)


def _known(found: dict[Any, Any], keys: tuple[str, ...], where: str) -> None:
    for key in found:
        if key not in keys:
            near = difflib.get_close_matches(str(key), keys, n=1)
            advice = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(keys)}."
            raise ValueError(f"{where}: unknown key {key!r}; {advice}")
