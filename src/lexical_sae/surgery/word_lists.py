"""Lists of words in groups: shipped ones by name, and YAML files of the user's own.

groups:
  religion:
    words: [muslim, christian, jewish]
    source: where the list comes from (for people)
"""

from __future__ import annotations

from pathlib import Path

from lexical_sae.text.word_groups import group_words, read_groups

SHIPPED = Path(__file__).parent / "words"
LEFT_OUT = ("ambiguous",)  # of a shipped list, unless asked for by name


def shipped_lists() -> tuple[str, ...]:
    return tuple(sorted(file.stem for file in SHIPPED.glob("*.yaml")))


def load_word_list(name: str) -> dict[str, tuple[str, ...]]:
    """The groups of a list, by name. `name` is a shipped list ("identity"), a file of one's own, or
    either with a group behind a colon ("identity:religion")."""
    whole = _read(name)
    if whole is not None:
        left_out = LEFT_OUT if name in shipped_lists() else ()
        return {group: words for group, words in whole.items() if group not in left_out}
    base, _, group = name.rpartition(":")
    part = _read(base) if base else None
    if part is None:
        raise ValueError(
            f"{name!r} is no list of words; expected a YAML file, or one of: "
            f"{', '.join(shipped_lists())}."
        )
    if group not in part:
        raise ValueError(f"{base} has no group {group!r}; it has {', '.join(part)}.")
    return {group: part[group]}


def _read(name: str) -> dict[str, tuple[str, ...]] | None:
    path = SHIPPED / f"{name}.yaml" if name in shipped_lists() else Path(name)
    if not path.is_file():
        return None
    keys = ("words", "description", "source")
    entries = read_groups(path, "groups", keys, texts=("description", "source"))
    return {group: group_words(found, where) for group, found, where in entries}
