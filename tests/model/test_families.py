"""Every masked-LM family works unmodified, with WordPiece, BPE and Unigram tokenizers."""

from __future__ import annotations

import pytest
import torch
from transformers import AutoModel

from lexical_sae.attribution.verify import verify_sum
from lexical_sae.model.lexical_sae import LexicalSAE
from tests.tiny import FAMILIES, TEXTS, tiny_backbone, tiny_config, tiny_model, tiny_tokenizer


@pytest.mark.parametrize("family", FAMILIES)
class TestFamily:
    def test_lexical_logits_are_the_masked_lm_s_own(self, family: str) -> None:
        """h · E + b over the sliced dictionary equals the untouched model's logits."""
        tokenizer = tiny_tokenizer(FAMILIES[family][1])
        untouched = tiny_backbone(family)
        model = tiny_model(family)
        inputs = model.encode(TEXTS[:3]).model_inputs()
        with torch.no_grad():
            expected = untouched(**inputs).logits[..., model.lexical.token_ids]
            h = model.hidden_states(**inputs)
            found = h @ model.lexical.weight.T + model.lexical.bias
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
        assert len(tokenizer) < untouched.config.vocab_size  # the padded rows are no words

    def test_both_tasks_add_up_and_share_all_parameters(self, family: str) -> None:
        model = tiny_model(family)
        inputs = model.encode(TEXTS[:5]).model_inputs()
        for state in (model.classify(**inputs), model.tag(**inputs)):
            assert len(state.open_words) > 0
            assert verify_sum(state).ok

    def test_every_parameter_is_trained(self, family: str) -> None:
        """No leftover of the removed decoder: distributed training would stop at it."""
        model = tiny_model(family).train()
        state = model.classify(**model.encode(TEXTS[:40]).model_inputs())
        state.logits.square().sum().backward()
        unused = [name for name, p in model.named_parameters() if p.grad is None]
        assert unused == []

    def test_save_and_load(self, family: str, tmp_path) -> None:
        model = tiny_model(family)
        model.save_pretrained(tmp_path)
        loaded = LexicalSAE.from_pretrained(tmp_path)
        assert set(loaded.state_dict()) == set(model.state_dict())  # no leftover comes back
        inputs = model.encode(TEXTS[:6]).model_inputs()
        assert torch.equal(model.classify(**inputs).logits, loaded.classify(**inputs).logits)

    def test_dictionary_words_are_whole_words_in_a_sentence(self, family: str) -> None:
        model = tiny_model(family)
        assert {"film", "lovely", "gorgeous"} & set(model.dictionary.words)
        for word, token in zip(model.dictionary.words, model.dictionary.token_ids, strict=True):
            assert word.isalpha()
            ids = model.tokenizer(f". {word}", add_special_tokens=False)["input_ids"]
            assert ids[-1] == token

    def test_the_longest_text_that_is_allowed_can_be_read(self, family: str) -> None:
        model = tiny_model(family)
        encoded = model.encode(["film " * 500])
        assert encoded.truncated == (True,)
        assert encoded.input_ids.shape[1] == model.config.max_tokens
        assert verify_sum(model.classify(**encoded.model_inputs())).ok


@pytest.mark.parametrize("family", ["bert", "roberta", "distilbert", "modernbert"])
def test_an_encoder_without_a_head_gets_one(family: str, tmp_path) -> None:
    """A checkpoint of the bare encoder is recognised by its missing head weights."""
    folder = tmp_path / "encoder"
    AutoModel.from_config(tiny_config(family)).save_pretrained(folder)
    tiny_tokenizer(FAMILIES[family][1]).save_pretrained(folder)
    with pytest.warns(UserWarning, match="no masked-language-model head"):
        model = LexicalSAE.from_backbone(folder, labels=["no", "yes"])
    assert model.config.backbone_kind == "encoder"
    inputs = model.encode(TEXTS[:3]).model_inputs()
    assert verify_sum(model.classify(**inputs)).ok
    model.save_pretrained(tmp_path / "saved")
    loaded = LexicalSAE.from_pretrained(tmp_path / "saved")
    assert torch.equal(model.classify(**inputs).logits, loaded.classify(**inputs).logits)


@pytest.mark.parametrize("family", ["bert", "albert", "deberta-v2"])
def test_a_checkpoint_with_a_head_keeps_it(family: str, tmp_path) -> None:
    backbone = tiny_backbone(family)
    backbone.save_pretrained(tmp_path)
    tiny_tokenizer(FAMILIES[family][1]).save_pretrained(tmp_path)
    model = LexicalSAE.from_backbone(tmp_path, labels=["no", "yes"])
    assert model.config.backbone_kind == "masked_lm"
    inputs = model.encode(TEXTS[:2]).model_inputs()
    with torch.no_grad():
        expected = backbone(**inputs).logits[..., model.lexical.token_ids]
        h = model.hidden_states(**inputs)
    found = h @ model.lexical.weight.T + model.lexical.bias
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
