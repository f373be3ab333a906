"""Policies and reason codes as YAML files.

A policy:                              Reason codes:

    limits:                                codes:
      gender:                                R01:
        words: [he, she, actress]              description: praise of the acting
        share: 0.1                             words: [charming, performance]
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lexical_sae.certify.evidence import WordGroup
from lexical_sae.text.yaml_text import read_yaml


def load_policy(path: str | Path) -> tuple[WordGroup, ...]:
    """The limits of a policy file: words or groups that may not carry more than a share."""
    return tuple(
        WordGroup(name, _words(group, where), _share(group, where))
        for name, group, where in _groups(Path(path), "limits", ("words", "share", "description"))
    )


def load_codes(path: str | Path) -> tuple[WordGroup, ...]:
    """The reason codes of a file. No word may have two codes: shares would count it twice."""
    found = tuple(
        WordGroup(name, _words(group, where))
        for name, group, where in _groups(Path(path), "codes", ("words", "description"))
    )
    owner: dict[str, str] = {}
    for group in found:
        for word in group.words:
            other = owner.setdefault(word.casefold(), group.name)
            if other != group.name:
                raise ValueError(
                    f"{path}: {word!r} is in {other} and in {group.name}; expected one code per "
                    "word, so that shares add up."
                )
    return found


def _groups(
    path: Path, section: str, keys: tuple[str, ...]
) -> Iterable[tuple[str, dict[str, Any], str]]:
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
        _check_description(group, where)
        yield str(name), group, where


def _known(found: dict[Any, Any], keys: tuple[str, ...], where: str) -> None:
    for key in found:
        if key not in keys:
            near = difflib.get_close_matches(str(key), keys, n=1)
            advice = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(keys)}."
            raise ValueError(f"{where}: unknown key {key!r}; {advice}")


def _words(group: dict[str, Any], where: str) -> tuple[str, ...]:
    words = group.get("words")
    if not isinstance(words, list) or not words:
        raise ValueError(f"{where}: words is {words!r}; expected a list of words.")
    for word in words:
        if not isinstance(word, str) or not word.strip():
            raise ValueError(f"{where}: {word!r} is no word; expected text, in quotes if need be.")
    return tuple(word.strip() for word in words)


def _share(group: dict[str, Any], where: str) -> float:
    share = group.get("share")
    if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 <= share < 1:
        raise ValueError(f"{where}: share is {share!r}; expected a number from 0 to below 1.")
    return float(share)


def _check_description(group: dict[str, Any], where: str) -> None:
    """For those who read the file; nothing else uses it."""
    text = group.get("description", "")
    if not isinstance(text, str):
        raise ValueError(f"{where}: description is {text!r}; expected text.")
