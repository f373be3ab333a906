"""Policies and reason codes as YAML files.

A policy:                              Reason codes:

    limits:                                codes:
      gender:                                R01:
        words: [he, she, actress]              description: praise of the acting
        share: 0.1                             words: [charming, performance]
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lexical_sae.certify.evidence import WordGroup
from lexical_sae.text.word_groups import group_words, read_groups


def load_policy(path: str | Path) -> tuple[WordGroup, ...]:
    """The limits of a policy file: words or groups that may not carry more than a share."""
    return tuple(
        WordGroup(name, group_words(group, where), _share(group, where))
        for name, group, where in read_groups(
            Path(path), "limits", ("words", "share", "description")
        )
    )


def load_codes(path: str | Path) -> tuple[WordGroup, ...]:
    """The reason codes of a file. No word may have two codes: shares would count it twice."""
    found = tuple(
        WordGroup(name, group_words(group, where))
        for name, group, where in read_groups(Path(path), "codes", ("words", "description"))
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


def _share(group: dict[str, Any], where: str) -> float:
    share = group.get("share")
    if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 <= share < 1:
        raise ValueError(f"{where}: share is {share!r}; expected a number from 0 to below 1.")
    return float(share)
