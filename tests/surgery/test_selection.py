"""Words as people write them, found in the dictionary of any tokenizer."""

from __future__ import annotations

from pathlib import Path

import pytest

from lexical_sae.model.dictionary import Dictionary, surface
from lexical_sae.surgery.selection import bare, find_words, other_forms
from lexical_sae.surgery.word_lists import load_word_list, shipped_lists
from tests.tiny import tiny_tokenizer

WORDS = ("muslim", "Muslim", "Muslims", "gay", "gays", "kill", "killed", "good", "better", "women")
DICTIONARY = Dictionary(tuple(range(len(WORDS))), WORDS)


def shown(*words: str, **options: object) -> set[str]:
    found = find_words(DICTIONARY, words, **options)  # type: ignore[arg-type]
    return set(found.words(DICTIONARY))


@pytest.mark.parametrize("asked", ["muslim", "Muslim", "MUSLIMS", "Ġmuslim", "▁Muslim", " muslim"])
def test_case_plural_and_marks_do_not_matter(asked: str) -> None:
    assert shown(asked) == {"muslim", "Muslim", "Muslims"}


def test_other_forms_are_those_of_the_lemma_but_not_other_words() -> None:
    assert shown("kill") == {"kill", "killed"}
    assert shown("woman") == {"women"}
    assert shown("good") == {"good"}
    assert shown("gay", exact=True) == {"gay"}
    assert "better" not in other_forms("good", WORDS, "en")


def test_what_is_missing_is_said_with_the_nearest() -> None:
    found = find_words(DICTIONARY, ["gay", "muslin", "xyzzy"])
    assert set(found.found) == {"gay"}
    assert "muslim" in found.missing["muslin"]
    assert found.missing["xyzzy"] == ()
    notes = found.notes(DICTIONARY)
    assert notes[0] == "gay: gay, gays"
    assert notes[1].startswith("'muslin' is not in the dictionary; the nearest are muslim")
    assert "nothing is near it" in notes[2]


def test_patterns_are_searched_for_in_every_word() -> None:
    found = find_words(DICTIONARY, patterns=["^ga", "zz"])
    assert set(found.words(DICTIONARY)) == {"gay", "gays"}
    assert found.missing == {"/zz/": ()}
    with pytest.raises(ValueError, match="is no regular expression"):
        find_words(DICTIONARY, patterns=["("])
    with pytest.raises(ValueError, match="is no word"):
        find_words(DICTIONARY, [" "])


@pytest.mark.parametrize("kind", ["wordpiece", "bpe", "unigram"])
def test_every_token_is_found_by_its_own_raw_form(kind: str) -> None:
    tokenizer = tiny_tokenizer(kind)
    tokens = [t for t in tokenizer.get_vocab() if surface(tokenizer, t).isalpha()]
    ids = tuple(tokenizer.get_vocab()[t] for t in tokens)
    dictionary = Dictionary(ids, tuple(surface(tokenizer, t) for t in tokens))
    for v, token in enumerate(tokens):
        if surface(tokenizer, token).casefold() == bare(token):
            assert v in find_words(dictionary, [token], exact=True).coordinates
    assert sum(surface(tokenizer, t).casefold() == bare(t) for t in tokens) > 0.8 * len(tokens)


def test_lists_are_shipped_and_read() -> None:
    assert "identity" in shipped_lists()
    groups = load_word_list("identity")
    assert "muslim" in groups["religion"]
    assert "ambiguous" not in groups
    (ambiguous,) = load_word_list("identity:ambiguous").values()
    assert {"black", "white", "straight", "old", "older", "young", "blind"} <= set(ambiguous)
    assert not set(ambiguous) & {word for group in groups.values() for word in group}
    words = [word for group in groups.values() for word in group]
    assert len(words) == len(set(words))


def test_lists_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("groups:\n  a:\n    words: [x, y]\n    source: me\n", encoding="utf-8")
    assert load_word_list(str(file)) == {"a": ("x", "y")}
    file.write_text("groups:\n  ambiguous:\n    words: [z]\n", encoding="utf-8")
    assert load_word_list(str(file)) == {"ambiguous": ("z",)}
    file.write_text("groups:\n  a:\n    words: [x, y]\n    source: me\n", encoding="utf-8")
    with pytest.raises(ValueError, match="has no group 'b'; it has a"):
        load_word_list(f"{file}:b")
    with pytest.raises(ValueError, match="'nowhere' is no list of words; expected a YAML file, or"):
        load_word_list("nowhere")
    file.write_text("groups:\n  a:\n    word: [x]\n", encoding="utf-8")
    with pytest.raises(ValueError, match="unknown key 'word'; did you mean 'words'"):
        load_word_list(str(file))
