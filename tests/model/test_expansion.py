"""Words get senses: how they are chosen, what changes, and that it is kept."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from lexical_sae.model.config import LexicalSAEConfig
from lexical_sae.model.dictionary import dictionary_of
from lexical_sae.model.fingerprint import model_hash
from lexical_sae.model.lexical_sae import LexicalSAE
from lexical_sae.model.sense_choice import choose_words, fit_route
from lexical_sae.model.sense_contexts import Contexts, word_contexts
from lexical_sae.surgery.non_interference import check_non_interference
from lexical_sae.surgery.saved import suppress_saved
from lexical_sae.surgery.selection import find_words
from lexical_sae.surgery.suppression import suppress_words
from tests.tiny import TEXTS, tiny_model


def expanded(task: str = "classification", **options: object) -> LexicalSAE:
    model = tiny_model("bert", task=task, **options)
    model.expand(TEXTS, ["film", "music"], senses=3)
    return model


def synthetic(size: int = 24, each: int = 60) -> Contexts:
    """Words 0 to 9: the even ones have two groups of contexts, the odd ones one."""
    draw = torch.Generator().manual_seed(0)
    states, words = [], []
    for word in range(10):
        apart = torch.zeros(each, size)
        if word % 2 == 0:
            apart[: each // 3] = 3 * torch.randn(size, generator=draw) / size**0.5
        states.append(apart + 0.3 * torch.randn(each, size, generator=draw))
        words.append(torch.full((each,), word))
    return Contexts(torch.cat(words), torch.cat(states))


def test_words_with_two_groups_of_contexts_are_chosen() -> None:
    choices = choose_words(synthetic(), 5)
    assert {choice.coordinate for choice in choices} == {0, 2, 4, 6, 8}
    scores = [choice.score for choice in choices]
    assert scores == sorted(scores, reverse=True)
    assert all(choice.contexts == 60 for choice in choices)
    least = min(scores)
    others = [c for c in choose_words(synthetic(), 10) if c.coordinate % 2]
    assert all(choice.score < 0.3 * least for choice in others)
    assert choose_words(synthetic(each=12), 5) == []  # too few contexts to tell


def test_the_route_goes_to_the_nearest_centroid() -> None:
    states = synthetic().of(4).double()
    R, r = fit_route(states, 2)
    route = (states @ R.T + r).argmax(1)
    assert route.tolist() == [1] * 20 + [0] * 40  # the larger group comes first
    scores = (states @ R.T + r).topk(2).values
    assert float((scores[:, 0] - scores[:, 1]).mean()) == pytest.approx(2.0)


def test_contexts_that_are_all_alike_can_be_expanded() -> None:
    R, r = fit_route(torch.ones(6, 4), 2)
    assert bool(torch.isfinite(R).all())
    assert bool(torch.isfinite(r).all())


def test_contexts_are_where_the_word_stands() -> None:
    model = tiny_model("bert")
    assert model.dictionary is not None
    (film,) = model.dictionary.coordinates("film")
    found = word_contexts(model, TEXTS, [film])
    assert found.counts() == {film: sum("film" in text for text in TEXTS)}
    everything = word_contexts(model, TEXTS)
    assert everything.counts()[film] == found.counts()[film]
    torch.testing.assert_close(everything.of(film), found.of(film))
    assert len(everything.of(film, 7)) == 7
    model.lexical.threshold.data.fill_(1e9)
    assert word_contexts(model, TEXTS, [film], open_only=True).counts() == {}


@pytest.mark.parametrize("head", ["mlp", "linear", "bcos"])
def test_expansion_leaves_every_position_as_it_was(head: str) -> None:
    model = tiny_model("bert", head=head)
    inputs = model.encode(TEXTS[:12]).model_inputs()
    before, words = model.tag(**inputs).logits, len(model.dictionary or ())
    choices = model.expand(TEXTS, ["film", "music"], senses=3)
    torch.testing.assert_close(model.tag(**inputs).logits, before)
    assert [choice.coordinate for choice in choices] == model.config.expanded_words
    assert model.config.dictionary_size == words + 4
    assert model.lexical.weight.shape[0] == words  # tied, not copied
    assert model.head.word_table().shape[0] == words + 4


def test_names_of_senses() -> None:
    dictionary = expanded().dictionary
    assert dictionary is not None
    assert dictionary.words[-4:] == ("film₂", "film₃", "music₂", "music₃")
    assert dictionary.coordinates("film") == (
        *dictionary.coordinates("film₁"),
        *dictionary.coordinates("film#2"),
        *dictionary.coordinates("film₃"),
    )
    assert len(dictionary.coordinates("film")) == 3
    assert dictionary.coordinates("film#4") == ()
    assert dictionary.senses[dictionary.coordinates("music₂")[0]].word == "music"
    assert dictionary.plain_words[-1] == "music"
    # eleven senses and words that end in a number of their own
    many = dictionary_of([5, *range(6, 9), *[5] * 10], ["a", "b#2", "c", "d", *["a"] * 10])
    assert many.words[-1] == "a₁₁"
    assert many.senses[13].word == "a"
    assert many.coordinates("b#2") == (1,)


def test_suppression_of_a_word_and_of_a_sense() -> None:
    model = expanded()
    assert model.dictionary is not None
    every = model.dictionary.coordinates("film")
    assert find_words(model.dictionary, ["film"], exact=True).coordinates == every
    assert find_words(model.dictionary, ["FILM"]).coordinates == every
    for name in ("film#2", "film₂", "Film#2"):
        assert find_words(model.dictionary, [name]).coordinates == every[1:2]
    assert find_words(model.dictionary, (), patterns=["^film$"]).coordinates == every
    for words in (["film"], ["film#1"]):
        cut = suppress_words(model, words)
        inputs = model.encode(TEXTS).model_inputs()
        opened = cut.view.classify(**inputs).open_words.word
        assert not bool(torch.isin(opened, torch.tensor(cut.coordinates)).any())
        assert check_non_interference(cut.view, TEXTS[:40]).differing == 0


@pytest.mark.parametrize("task", ["classification", "tagging"])
@pytest.mark.parametrize("pooling", ["max", "attention"])
def test_save_and_load(task: str, pooling: str, tmp_path: Path) -> None:
    model = expanded(task, pooling=pooling, topk_per_position=4)
    model.save_pretrained(tmp_path)
    loaded = LexicalSAE.from_pretrained(tmp_path)
    inputs = model.encode(TEXTS[:20]).model_inputs()
    for run in ("classify", "tag"):
        one, two = getattr(model, run)(**inputs), getattr(loaded, run)(**inputs)
        assert torch.equal(one.logits, two.logits)
        assert torch.equal(one.open_words.word, two.open_words.word)
    assert loaded.dictionary == model.dictionary
    assert model_hash(loaded) == model_hash(model)
    assert loaded.config.expanded_words == model.config.expanded_words


def test_a_sense_can_be_cut_out_of_a_saved_model(tmp_path: Path) -> None:
    model = expanded()
    model.save_pretrained(tmp_path / "model")
    suppress_saved(tmp_path, tmp_path / "model", tmp_path / "cut", ["film#2"])
    cut = LexicalSAE.from_pretrained(tmp_path / "cut" / "model")
    assert cut.dictionary is not None
    gone = [cut.dictionary.words[v] for v in (~cut.lexical.keep).nonzero()[:, 0].tolist()]
    assert gone == ["film₂"]


def test_the_hash_covers_the_choice() -> None:
    model = expanded()
    before = model_hash(model)
    assert model.lexical.senses is not None
    with torch.no_grad():
        model.lexical.senses.bias[0] += 1e-3
    assert model_hash(model) != before
    assert model_hash(tiny_model("bert")) != before


def test_a_unit_of_a_bcos_head_is_as_long_when_loaded_again(tmp_path: Path) -> None:
    model = expanded(head="bcos", head_depth=3)
    model.save_pretrained(tmp_path)
    loaded = LexicalSAE.from_pretrained(tmp_path)
    inputs = model.encode(TEXTS[:20]).model_inputs()
    assert torch.equal(loaded.classify(**inputs).logits, model.classify(**inputs).logits)


@pytest.mark.parametrize("head", ["mlp", "bcos"])
@pytest.mark.parametrize("task", ["classification", "tagging"])
def test_compaction_is_suppression(task: str, head: str) -> None:
    model = expanded(task, head=head)
    run = "tag" if task == "tagging" else "classify"
    model.suppress([0, 1])
    small = model.compact(TEXTS[:6])
    assert len(small.dictionary or ()) < len(model.dictionary or ())
    inputs = model.encode(TEXTS[:6]).model_inputs()
    assert torch.equal(getattr(small, run)(**inputs).logits, getattr(model, run)(**inputs).logits)
    names = {(small.dictionary or ()).words[v] for v in small.lexical.keep.nonzero()[:, 0]}  # type: ignore[union-attr]
    gone = [v for v, word in enumerate(model.dictionary.words) if word not in names]  # type: ignore[union-attr]
    model.suppress(gone)
    inputs = model.encode(TEXTS).model_inputs()
    assert torch.equal(getattr(small, run)(**inputs).logits, getattr(model, run)(**inputs).logits)
    again = model.compact(["quite"])
    assert again.lexical.senses is None or len(again.config.expanded_words) <= 2


def test_calibration_counts_words() -> None:
    model = expanded()
    model.calibrate(TEXTS[:64], 5)
    counts = model.classify(**model.encode(TEXTS[:64]).model_inputs()).open_words.counts()
    assert 4 <= float(counts.float().mean()) <= 8
    assert len(model.lexical.threshold.unique()) == 1


def test_what_is_refused() -> None:
    model = tiny_model("bert")
    with pytest.raises(ValueError, match="'flim' is not in the dictionary"):
        model.expand(TEXTS, ["flim"])
    with pytest.raises(ValueError, match="senses is 1; expected 2 to 9"):
        model.expand(TEXTS, ["film"], senses=1)
    with pytest.raises(ValueError, match=r"'film' stands in \d places of the 2 texts"):
        model.expand(TEXTS[:2], ["film"], senses=4)
    with pytest.raises(ValueError, match="no word stands 20 times"):
        model.expand(TEXTS[:3])
    with pytest.raises(ValueError, match="words is 'film'; expected a list"):
        model.expand(TEXTS, "film")
    with pytest.raises(ValueError, match="have senses already"):
        expanded().expand(TEXTS, ["film"])
    for options, message in (
        ({"senses": 2}, "senses is 2 with 0 expanded words"),
        ({"expanded_words": [1]}, "senses is 1 with 1 expanded words"),
        ({"expanded_words": [1, 1], "senses": 2, "dictionary_size": 9}, "different coordinates"),
        ({"expanded_words": [8], "senses": 2, "dictionary_size": 9}, "from 0 to 7"),
    ):
        with pytest.raises(ValueError, match=message):
            LexicalSAEConfig(**options)
