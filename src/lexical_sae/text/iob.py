"""The IOB2 scheme: every entity starts with ``B-TYPE`` and goes on with ``I-TYPE``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

OUTSIDE = "O"


class Span(NamedTuple):
    """An entity over tokens ``start`` (included) to ``end`` (excluded)."""

    start: int
    end: int
    type: str


class Violation(NamedTuple):
    """The first token whose tag breaks the scheme, and why."""

    token: int
    reason: str


def split_tag(tag: str) -> tuple[str, str] | None:
    """``"B-PER"`` as ``("B", "PER")``, ``"O"`` as ``("O", "")``; None for anything else."""
    if tag == OUTSIDE:
        return OUTSIDE, ""
    prefix, dash, kind = tag.partition("-")
    return (prefix, kind) if prefix in ("B", "I") and dash and kind else None


def find_violation(tags: Sequence[str]) -> Violation | None:
    """The first place where ``tags`` is not IOB2, or None."""
    previous = ""  # the entity type that is open before this token
    for index, tag in enumerate(tags):
        parts = split_tag(tag)
        if parts is None:
            return Violation(index, f"{tag!r} is neither 'O' nor 'B-TYPE' nor 'I-TYPE'")
        prefix, kind = parts
        if prefix == "I" and kind != previous:
            before = tags[index - 1] if index else "the start of the sentence"
            return Violation(index, f"{tag!r} follows {before!r}; an entity starts with 'B-{kind}'")
        previous = kind
    return None


def spans_to_tags(length: int, spans: Iterable[Span]) -> list[str]:
    """IOB2 tags of ``length`` tokens that mark ``spans``, which must not overlap."""
    tags = [OUTSIDE] * length
    for start, end, kind in spans:
        tags[start:end] = [f"B-{kind}"] + [f"I-{kind}"] * (end - start - 1)
    return tags


def tags_to_spans(tags: Sequence[str]) -> list[Span]:
    """The entities of a legal IOB2 sequence, in order."""
    spans: list[Span] = []
    for index, tag in enumerate(tags):
        if tag.startswith("B-"):
            spans.append(Span(index, index + 1, tag[2:]))
        elif tag != OUTSIDE:
            spans[-1] = spans[-1]._replace(end=index + 1)
    return spans


def tag_inventory(tags: Iterable[str]) -> tuple[str, ...]:
    """``O``, then ``B-`` and ``I-`` of each type seen.

    Both forms are listed even if only one was seen: a type whose training entities are all one
    word long still has longer entities elsewhere.
    """
    parts = [split_tag(tag) for tag in set(tags)]
    kinds = sorted({part[1] for part in parts if part is not None and part[1]})
    return (OUTSIDE, *(f"{prefix}-{kind}" for kind in kinds for prefix in "BI"))
