"""Training with senses: the balance term, the settings, a run from data to a saved model."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from lexical_sae.attribution.explain import explain
from lexical_sae.attribution.verify import verify_sum
from lexical_sae.certify.proofs import explain_with_proofs
from lexical_sae.model.lexical_sae import LexicalSAE
from lexical_sae.model.open_words import Routes
from lexical_sae.training.config import dump_config, load_config, resolve_config
from lexical_sae.training.fit import fit
from lexical_sae.training.losses.balance import SenseLoads
from tests.training.small import save_backbone, small_config, small_dataset


def routes(scores: torch.Tensor, word: list[int]) -> Routes:
    return Routes(torch.tensor(word, dtype=torch.long), torch.softmax(scores, -1))


def test_balance_is_0_if_senses_carry_the_same_and_pulls_at_the_scores_if_not() -> None:
    even = torch.tensor([[3.0, 0.0], [0.0, 3.0]], requires_grad=True)
    loads = SenseLoads(2, 2)
    value = loads(routes(even, [1, 1]))
    assert value.item() == pytest.approx(0.0, abs=1e-7)
    (gradient,) = torch.autograd.grad(value, even)
    torch.testing.assert_close(gradient, torch.zeros_like(gradient), atol=1e-7, rtol=0)
    uneven = torch.tensor([[3.0, 0.0], [2.0, 0.0]], requires_grad=True)
    value = loads(routes(uneven, [0, 0]))
    assert 0 < value.item() < 1
    (gradient,) = torch.autograd.grad(value, uneven)
    assert bool((gradient[:, 0] > 0).all())  # less of what is used too much
    for _ in range(400):
        value = loads(routes(torch.tensor([[99.0, 0.0]] * 8), [0] * 8))
    assert value.item() == pytest.approx(0.5, abs=1e-3)  # one word of two has collapsed
    unseen = loads(routes(torch.zeros(0, 2), []))
    assert unseen.item() == pytest.approx(0.5, abs=1e-3)


def test_settings_round_trip(tmp_path: Path) -> None:
    config = resolve_config({"dataset": "x", "senses": {"words": ["bank", "set"], "count": 4}})
    assert config.settings.senses is not None
    assert config.settings.senses.words == ["bank", "set"]
    (tmp_path / "run.yaml").write_text(dump_config(config))
    assert load_config(tmp_path / "run.yaml") == config
    assert resolve_config({"dataset": "x"}).settings.senses is None
    with pytest.raises(ValueError, match=r"senses.words is 'bank' .* expected a list of texts"):
        resolve_config({"dataset": "x", "senses": {"words": "bank"}})
    with pytest.raises(ValueError, match=r"senses.count is 1"):
        resolve_config({"dataset": "x", "senses": {"count": 1}})


def test_a_run_with_senses(tmp_path: Path) -> None:
    senses = {"words": ["film", "the"], "count": 2, "balance": 1.0}
    config = small_config(
        save_backbone(tmp_path / "backbone"), senses=senses, epochs=1, model={"positions": "words"}
    )
    train, test = small_dataset(96), small_dataset(40, 1)
    fitted = fit(config, train, None, tmp_path / "run", held_out=test)
    model = fitted.model
    assert fitted.trainer is not None
    assert "balance" in fitted.trainer.state.log_history[0]
    assert model.config.senses == 2
    start = model.lexical.senses.weight.detach().clone()
    assert bool(torch.isfinite(start).all())
    state = model.classify(**model.encode(test.texts).model_inputs())
    assert verify_sum(state).ok
    assert set(model.sense_notes) == {"film₁", "film₂", "the₁", "the₂"}
    model.save_pretrained(tmp_path / "model")
    loaded = LexicalSAE.from_pretrained(tmp_path / "model")
    assert loaded.sense_notes == model.sense_notes
    opened = [v for v in model.dictionary.senses if v in state.open_words.word.tolist()]
    if opened:
        row = int(state.open_words.row[state.open_words.word == opened[0]][0])
        found = explain(loaded, test.texts[row])
        (entry,) = [word for word in found.vocabulary if word.coordinate == opened[0]]
        name = model.dictionary.words[opened[0]]
        said = entry.to_dict()["sense"]
        assert said["of"] + "₁₂"[said["number"] - 1] == name == entry.word
        assert entry.shown.startswith(name)
    for method in ("contributions", "integrated_gradients"):
        for proved in explain_with_proofs(
            loaded, test.texts[:3], certify=True, flip=True, optimal=True, method=method
        ):
            assert proved.residual < 1e-5
            assert proved.flip is not None
    (tmp_path / "model" / "senses.json").unlink()
    with pytest.raises(ValueError, match="The senses beside"):
        LexicalSAE.from_pretrained(tmp_path / "model")
