"""Calibrated start, compaction and adaptation."""

from __future__ import annotations

import pytest
import torch
from transformers import AutoModel

from lexical_sae.attribution.contributions import compute_attribution_tensor
from lexical_sae.model import adaptation
from lexical_sae.model.lexical_sae import LexicalSAE
from tests.tiny import TEXTS, tiny_config, tiny_model, tiny_tokenizer


@pytest.mark.parametrize("task", ["classification", "tagging"])
@pytest.mark.parametrize("wanted", [1, 5, 20])
def test_calibration_opens_the_wanted_number_of_words(task: str, wanted: int) -> None:
    model = tiny_model("bert", dictionary="all", task=task)
    texts = TEXTS[:96]
    threshold = model.calibrate(texts, wanted)
    assert threshold > 0
    inputs = model.encode(texts).model_inputs()
    state = model.tag(**inputs) if task == "tagging" else model.classify(**inputs)
    counts = state.open_words.counts()
    if task == "tagging":
        counts = counts[model.word_mask(**inputs)]
    # documents exactly, up to ties and rounding; tokens up to sampling
    tolerance = 0.05 if task == "classification" else 0.35
    assert abs(float(counts.float().mean()) - wanted) <= tolerance * wanted + 0.02


def test_calibration_never_goes_below_zero_and_refuses_nonsense() -> None:
    model = tiny_model("bert")
    assert model.calibrate(TEXTS[:8], len(model.dictionary)) == 0.0
    with pytest.raises(ValueError, match="open_words is 0; expected 1 to"):
        model.calibrate(TEXTS[:8], 0)
    with pytest.raises(ValueError, match="None of the texts contains a word"):
        model.calibrate(["", ""], 3)


@pytest.mark.parametrize("pooling", ["max", "attention"])
@pytest.mark.parametrize("task", ["classification", "tagging"])
def test_compaction_equals_the_suppressed_model_bit_for_bit(task: str, pooling: str) -> None:
    model = tiny_model("bert", open_words=3, task=task, pooling=pooling)
    calibration, others = TEXTS[:10], TEXTS[100:130]
    small = model.compact(calibration)
    kept = set(small.lexical.token_ids.tolist())
    assert 0 < len(kept) < len(model.dictionary)
    assert len(small.dictionary) == small.config.dictionary_size == len(kept)
    gone = [v for v, token in enumerate(model.dictionary.token_ids) if token not in kept]
    model.suppress(gone)
    inputs = model.encode(others).model_inputs()
    run = "tag" if task == "tagging" else "classify"
    full, sliced = getattr(model, run)(**inputs), getattr(small, run)(**inputs)
    assert torch.equal(full.logits, sliced.logits)
    assert torch.equal(full.open_words.value, sliced.open_words.value)
    words = [model.dictionary.words[v] for v in full.open_words.word]
    assert words == [small.dictionary.words[v] for v in sliced.open_words.word]
    assert torch.equal(compute_attribution_tensor(full), compute_attribution_tensor(sliced))


def test_calibration_counts_words_that_can_open() -> None:
    model = tiny_model("bert", dictionary="all")
    model.suppress(range(0, 60))
    model.calibrate(TEXTS[:64], 5)
    state = model.classify(**model.encode(TEXTS[:64]).model_inputs())
    assert float(state.open_words.counts().float().mean()) == pytest.approx(5, rel=0.05)


def test_a_compacted_model_is_saved_and_loaded(tmp_path) -> None:
    small = tiny_model("bert", open_words=3).compact(TEXTS[:10])
    small.save_pretrained(tmp_path)
    inputs = small.encode(TEXTS[:9]).model_inputs()
    loaded = LexicalSAE.from_pretrained(tmp_path)
    assert torch.equal(small.classify(**inputs).logits, loaded.classify(**inputs).logits)


def test_compaction_without_open_words_is_refused() -> None:
    model = tiny_model("bert")
    with pytest.raises(ValueError, match="No word opens on the 1 texts given"):
        model.compact([""])


def test_coordinates_outside_the_dictionary_are_refused() -> None:
    with pytest.raises(ValueError, match="Coordinate 999 is outside the dictionary"):
        tiny_model("bert").suppress([999])
    with pytest.raises(ValueError, match="'film' is no coordinate; expected a number"):
        tiny_model("bert").suppress(["film"])


@pytest.fixture
def encoder(tmp_path, monkeypatch):
    monkeypatch.setenv("LEXICAL_SAE_CACHE", str(tmp_path / "cache"))
    torch.manual_seed(0)
    AutoModel.from_config(tiny_config("bert")).save_pretrained(tmp_path / "encoder")
    tiny_tokenizer("wordpiece").save_pretrained(tmp_path / "encoder")
    return tmp_path / "encoder"


@pytest.mark.filterwarnings("ignore:This backbone has no masked")
def test_adaptation_teaches_a_position_its_word_and_is_cached(encoder, monkeypatch) -> None:
    def loss_of(model: LexicalSAE) -> float:
        torch.manual_seed(1)
        table = adaptation._coordinate_of_token(model)
        settings = adaptation.AdaptationSettings(masked=0.0, copied=1.0)
        with torch.no_grad():
            return float(adaptation.adaptation_loss(model, TEXTS[:64], table, settings))

    settings = {"steps": 60, "learning_rate": 3e-3, "head_learning_rate": 1e-2}
    model = LexicalSAE.from_backbone(encoder, labels=["a", "b"])
    before = loss_of(model)
    model.adapt(TEXTS, **settings)
    after = loss_of(model)
    assert after < 0.5 * before
    assert all(p.grad is None for p in model.parameters())

    def never(*args: object) -> None:
        raise AssertionError("trained again in spite of the cache")

    monkeypatch.setattr(adaptation, "_run", never)
    again = LexicalSAE.from_backbone(encoder, labels=["a", "b"])
    again.adapt(TEXTS, **settings)
    assert loss_of(again) == after
    for change in ({"texts": TEXTS[:-1]}, {"steps": 61}):  # other texts or settings: not the cache
        other = LexicalSAE.from_backbone(encoder, labels=["a", "b"])
        with pytest.raises(AssertionError, match="trained again"):
            other.adapt(change.pop("texts", TEXTS), **{**settings, **change})


@pytest.mark.filterwarnings("ignore:This backbone has no masked")
def test_adaptation_shows_progress_and_refuses_nothing_to_read(encoder, capsys) -> None:
    model = LexicalSAE.from_backbone(encoder, labels=["a", "b"])
    model.adapt(TEXTS[:40], steps=3)
    assert "Adapting the lexical head" in capsys.readouterr().err
    with pytest.raises(ValueError, match="texts is empty; expected at least one string"):
        model.adapt([])


@pytest.mark.filterwarnings("ignore:This backbone has no masked")
def test_a_damaged_or_unwritable_cache_costs_time_only(encoder, tmp_path, monkeypatch) -> None:
    def weight() -> torch.Tensor:
        model = LexicalSAE.from_backbone(encoder, labels=["a", "b"])
        model.adapt(TEXTS, steps=2)
        return model.lexical.weight

    first = weight()
    (file,) = (tmp_path / "cache" / "adapted").iterdir()
    file.write_bytes(b"not a safetensors file")
    assert torch.equal(weight(), first)
    (tmp_path / "taken").write_text("a file where the cache should be")
    monkeypatch.setenv("LEXICAL_SAE_CACHE", str(tmp_path / "taken"))
    with pytest.warns(UserWarning, match="could not be cached"):
        assert torch.equal(weight(), first)


@pytest.mark.filterwarnings("ignore:This backbone has no masked")
@pytest.mark.parametrize(
    ("settings", "message"),
    [({"step": 3}, "'step' is no setting"), ({"steps": 0}, "cannot be run")],
)
def test_settings_that_make_no_sense_are_refused(encoder, settings, message) -> None:
    model = LexicalSAE.from_backbone(encoder, labels=["a", "b"])
    with pytest.raises(ValueError, match=message):
        model.adapt(TEXTS, **settings)
    with pytest.raises(ValueError, match=r"None of the 2 texts has a word of the dictionary"):
        model.adapt(["qqq", "xxx"], steps=2, cache=False)


def test_texts_given_to_from_backbone_adapt_and_calibrate(encoder) -> None:
    model = LexicalSAE.from_backbone(encoder, labels=["a", "b"], texts=TEXTS, dictionary="all")
    state = model.classify(**model.encode(TEXTS[:32]).model_inputs())
    assert len(state.open_words) > 0
    assert float(model.lexical.threshold.detach().min()) >= 0
