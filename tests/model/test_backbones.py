"""What can be a backbone, and what each thing that cannot be one is told."""

from __future__ import annotations

import json

import pytest
import torch
from tokenizers import processors
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    BertForSequenceClassification,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
)

from lexical_sae.model.dictionary import build_dictionary
from lexical_sae.model.lexical_sae import LexicalSAE
from tests.tiny import TEXTS, tiny_backbone, tiny_config, tiny_model, tiny_tokenizer


def build(backbone: object, **options: object) -> LexicalSAE:
    options.setdefault("tokenizer", tiny_tokenizer("wordpiece"))
    return LexicalSAE.from_backbone(backbone, labels=["no", "yes"], **options)


def test_a_backbone_object_is_left_as_it_was() -> None:
    backbone = tiny_backbone("bert")
    ids = torch.tensor([[2, 7, 8, 3]])
    before = backbone(ids).logits
    first, second = build(backbone), build(backbone)
    assert torch.equal(backbone(ids).logits, before)
    assert torch.equal(first.classify(ids).logits, second.classify(ids).logits)


@pytest.mark.filterwarnings("ignore:This backbone has no masked")
def test_an_added_transform_starts_as_the_identity_whatever_the_seed() -> None:
    """Else the adaptation would begin at noise, and another seed would not find it again."""
    encoder = tiny_backbone("bert").bert
    for seed in (0, 1):
        transform = build(encoder, seed=seed).transform
        assert torch.equal(transform.dense.weight, torch.eye(32))
        assert not transform.dense.bias.any()
        h = torch.randn(3, 32)
        assert torch.allclose(transform(h), torch.nn.functional.layer_norm(h, (32,)))


def test_other_kinds_of_model_are_refused() -> None:
    size = tiny_config("bert").vocab_size
    gpt = GPT2LMHeadModel(GPT2Config(vocab_size=size, n_embd=16, n_layer=1, n_head=2))
    for model in (BertForSequenceClassification(tiny_config("bert")), gpt):
        with pytest.raises(ValueError, match="is neither the masked language model nor the bare"):
            build(model)
    small = {"encoder_layers": 1, "decoder_layers": 1, "d_model": 16, "encoder_ffn_dim": 16}
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "decoder_ffn_dim": 16}
    bart = BartForConditionalGeneration(BartConfig(vocab_size=size, **small, **heads))
    with pytest.raises(ValueError, match="does not end in a linear decoder"):
        build(bart)


def test_pickled_weights_are_refused(tmp_path) -> None:
    backbone = tiny_backbone("bert")
    backbone.config.save_pretrained(tmp_path)
    tiny_tokenizer("wordpiece").save_pretrained(tmp_path)
    torch.save(backbone.state_dict(), tmp_path / "pytorch_model.bin")
    with pytest.raises(ValueError, match=r"cannot be loaded .* safetensors"):
        build(tmp_path)


def test_weights_in_half_precision_become_fp32(tmp_path) -> None:
    tiny_backbone("bert").bfloat16().save_pretrained(tmp_path)
    tiny_tokenizer("wordpiece").save_pretrained(tmp_path)
    model = build(tmp_path)
    assert {p.dtype for p in model.parameters()} == {torch.float32}


def test_damaged_and_foreign_folders(tmp_path) -> None:
    tiny_backbone("bert").save_pretrained(tmp_path)
    tiny_tokenizer("wordpiece").save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="holds a 'bert' model, not a lexical-sae one"):
        LexicalSAE.from_pretrained(tmp_path)
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:500])
    with pytest.raises(ValueError, match="cannot be loaded"):
        build(tmp_path)


def test_unknown_architectures_and_broken_configs_get_one_sentence(tmp_path) -> None:
    tiny_tokenizer("wordpiece").save_pretrained(tmp_path)
    for config in ('{"model_type": "no-such-thing"}', "{not json"):
        (tmp_path / "config.json").write_text(config)
        with pytest.raises(ValueError, match=r"(backbone|tokenizer).* loaded") as caught:
            build(tmp_path)
        assert "\n" not in str(caught.value)
        with pytest.raises(ValueError, match=r"not a lexical-sae one|cannot be loaded") as caught:
            LexicalSAE.from_pretrained(tmp_path)
        assert "\n" not in str(caught.value)


def test_a_lexical_sae_is_no_backbone(tmp_path) -> None:
    tiny_model("bert").save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="holds a lexical-sae model, which is no backbone"):
        build(tmp_path)


def test_a_tokenizer_with_more_ids_than_the_backbone_is_refused() -> None:
    with pytest.raises(ValueError, match="has ids up to 366, but the backbone embeds"):
        build(tiny_backbone("bert"), tokenizer=tiny_tokenizer("bpe"))


def test_special_positions_are_those_the_tokenizer_adds() -> None:
    """Also where start and end are not declared special, or one of them doubles as unknown."""
    core = tiny_tokenizer("wordpiece").backend_tokenizer
    assert isinstance(core.post_processor, processors.TemplateProcessing)
    names = {"pad_token": "[PAD]", "unk_token": "[CLS]", "mask_token": "[MASK]"}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, model_max_length=64, **names)
    model = build(tiny_backbone("bert"), tokenizer=tokenizer)
    mask = model.word_mask(**model.encode(["the film is lovely"]).model_inputs())
    assert mask.tolist() == [[False, True, True, True, True, False]]


def test_words_of_other_scripts_are_words() -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers

    pieces = ["[PAD]", "[UNK]", "好", "你好", "мир", "हिन्दी", "é", "b", "don", ",", "##好"]
    core = Tokenizer(models.WordPiece({p: i for i, p in enumerate(pieces)}, unk_token="[UNK]"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, unk_token="[UNK]", pad_token="[PAD]")
    found = build_dictionary(tokenizer, "words", 99).words
    assert found == ("好", "你好", "мир", "हिन्दी", "don")


def test_a_changed_size_in_the_config_is_refused(tmp_path) -> None:
    tiny_model("bert").save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"dictionary_size": 5}))
    with pytest.raises(ValueError, match=r"The model in .* cannot be loaded"):
        LexicalSAE.from_pretrained(tmp_path)


def test_gradient_checkpointing_reaches_the_backbone() -> None:
    model = tiny_model("bert").train()
    model.gradient_checkpointing_enable()
    assert model.is_gradient_checkpointing
    assert model.get_input_embeddings() is model.backbone.get_input_embeddings()
    model.classify(**model.encode(TEXTS[:4]).model_inputs()).logits.sum().backward()
