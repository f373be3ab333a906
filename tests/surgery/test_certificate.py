"""Suppress, restore, certify, verify: on a small trained run, and what is not as it was."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from rich.console import Console

from lexical_sae.model.lexical_layer import LexicalLayer
from lexical_sae.model.lexical_sae import LexicalSAE
from lexical_sae.surgery.certificate import certify_removal
from lexical_sae.surgery.non_interference import check_non_interference
from lexical_sae.surgery.suppression import without_words
from lexical_sae.surgery.verification import differences
from lexical_sae.training.config import resolve_config
from lexical_sae.training.run import train_run
from tests.command_line import run
from tests.tagged import tagged_dataset, tiny_tagger
from tests.text.conftest import write_columns
from tests.tiny import TEXTS, tiny_model
from tests.training.small import save_backbone, small_dataset


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained run, the run without a word, keys, and a signed and a plain certificate."""
    folder = tmp_path_factory.mktemp("surgery")
    backbone, data = save_backbone(folder / "backbone"), folder / "data"
    data.mkdir()
    for split, rows, seed in (("train", 120, 0), ("test", 60, 1)):
        found = small_dataset(rows, seed)
        names = [found.label_names[label] for label in found.labels]
        write_columns(data / f"{split}.csv", {"text": found.texts, "label": names})
    settings = {
        "dataset": str(data),
        "backbone": str(backbone),
        "epochs": 2,
        "batch_size": 8,
        "target_words": 4,
        "start_words": 16,
        "learning_rate": 1e-3,
        "dictionary_rate_factor": 1,
    }
    train_run(resolve_config(settings), folder / "run", console=Console(quiet=True))
    key, other = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (folder / "key.pem").write_bytes(private)
    for name, one in (("public.pem", key), ("other.pem", other)):
        public = one.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        (folder / name).write_bytes(public)
    shown, _ = run("suppress", folder / "run", "lovely", "boring", "--output", folder / "cut")
    assert "lovely: lovely" in shown
    assert f"saved to {folder / 'cut'}" in shown
    run("certify", folder / "cut", "--output", folder / "plain.json")
    signed = ("--output", folder / "signed.json", "--sign", folder / "key.pem")
    shown, _ = run("certify", folder / "cut", *signed)
    assert "random fillings of these words changed 0 decisions" in shown
    assert "leak, linear probe" in shown
    return folder


def test_the_original_is_untouched_and_the_record_tells(folder: Path) -> None:
    first, cut = (LexicalSAE.from_pretrained(folder / name / "model") for name in ("run", "cut"))
    assert bool(first.lexical.keep.all())
    assert int((~cut.lexical.keep).sum()) == 2
    (entry,) = json.loads((folder / "cut" / "suppression.json").read_text())
    assert entry["words"] == ["boring", "lovely"]
    assert (folder / "cut" / "config.yaml").is_file()


def test_restore_gives_the_same_model_back(folder: Path, tmp_path: Path) -> None:
    shown, _ = run("restore", folder / "cut", "--output", tmp_path / "back")
    assert "2 words are back" in shown
    weights = "model/model.safetensors"
    assert (tmp_path / "back" / weights).read_bytes() == (folder / "run" / weights).read_bytes()
    _, error = run("restore", tmp_path / "back", "--output", tmp_path / "x", code=2)
    assert "nothing to restore" in error


def test_words_left_unread_from_command_to_certificate(folder: Path, tmp_path: Path) -> None:
    how = ("--how", "both", "--output", tmp_path / "blind")
    shown, _ = run("suppress", folder / "run", "lovely", "zyxx", *how)
    assert "'zyxx' is not in the dictionary" in shown
    assert "It is left unread all the same." in shown
    assert "left unread: lovely, lovelys, zyxx, zyxxs" in shown
    assert "1 of " in shown
    assert "4 words are left unread" in shown
    (entry,) = json.loads((tmp_path / "blind" / "suppression.json").read_text())
    assert entry["unread"] == ["lovely", "lovelys", "zyxx", "zyxxs"]
    shown, _ = run("explain", tmp_path / "blind", "A Lovely film.")
    assert "not read: Lovely" in shown
    shown, _ = run("certify", tmp_path / "blind", "--output", tmp_path / "c.json")
    assert "exchanged or dropped 0 were read otherwise" in shown
    run("verify", tmp_path / "c.json", tmp_path / "blind")
    config = tmp_path / "blind" / "model" / "config.json"
    whole = config.read_text()
    config.write_text(whole.replace('"lovelys"', '"lovelyz"'))
    shown, _ = run("verify", tmp_path / "c.json", tmp_path / "blind", code=1)
    assert "The model is another one" in shown
    config.write_text(whole)
    shown, _ = run("restore", tmp_path / "blind", "--output", tmp_path / "back")
    assert "1 word is back and 4 words are read again" in shown
    for name in ("model.safetensors", "config.json"):
        old, new = (
            (one / "model" / name).read_bytes() for one in (folder / "run", tmp_path / "back")
        )
        assert old == new
    for damaged in ('"unread": [1]', '"unread": "x"', '"unread": null'):
        config.write_text(re.sub(r'"unread": \[[^]]*\]', damaged, whole))
        again = ("--how", "unread", "--output", tmp_path / "x")
        _, error = run("suppress", tmp_path / "blind", "boring", *again, code=2)
        assert "is damaged ('unread'); restore the original file" in error
        _, error = run("explain", tmp_path / "blind", "A film.", code=2)
        assert "unread" in error
    _, error = run("suppress", folder / "run", "boring", "--how", "gone", *again[2:], code=2)
    assert "how is 'gone'; expected one of cut, unread, both" in error
    assert not (tmp_path / "x").exists()


def test_certificates_are_verified(folder: Path) -> None:
    shown, _ = run("verify", folder / "signed.json", folder / "cut")
    assert "the signature holds; key" in shown
    assert "was not checked (--public-key)" in shown
    assert "verified" in shown
    run("verify", folder / "plain.json", folder / "cut")
    keys = ("--public-key", folder / "public.pem")
    run("verify", folder / "signed.json", folder / "cut", *keys)
    shown, _ = run("verify", folder / "plain.json", folder / "cut", *keys, code=1)
    assert "it is not signed" in shown
    keys = ("--public-key", folder / "other.pem")
    shown, _ = run("verify", folder / "signed.json", folder / "cut", *keys, code=1)
    assert "signed by another key" in shown


def test_one_changed_byte_of_the_model_is_found(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "cut", tmp_path / "cut")
    weights = tmp_path / "cut" / "model" / "model.safetensors"
    whole = weights.read_bytes()
    for place in (-1001, -20_001, -len(whole) // 2):
        held = bytearray(whole)
        held[place] ^= 1
        weights.write_bytes(bytes(held))
        shown, _ = run("verify", folder / "plain.json", tmp_path / "cut", code=1)
        assert "The model is another one" in shown
    weights.write_bytes(whole)
    config = tmp_path / "cut" / "model" / "config.json"
    changed = config.read_text().replace('"hidden_act": "gelu"', '"hidden_act": "relu"')
    assert changed != config.read_text()
    config.write_text(changed)
    shown, _ = run("verify", folder / "plain.json", tmp_path / "cut", code=1)
    assert "The model is another one" in shown
    shown, _ = run("verify", folder / "plain.json", folder / "run", code=1)
    assert "The model is another one" in shown


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("tokenizer.json", b'"funny"', b'"funnx"'),
        ("tokenizer.json", b"{", b""),
        ("model.safetensors", b'"dtype":"F32"', b'"dtype":"F3x"'),
        ("model.safetensors", b'{"', b'["'),
        ("config.json", b'"num_attention_heads": ', b'"num_attention_heads": 7'),
        ("config.json", b'"hidden_size": ', b'"hidden_size": 1'),
        ("config.json", b'"labels": [', b'"labels": ["x", '),
        ("config.json", b"{", b""),
    ],
)
def test_a_changed_model_that_cannot_be_loaded_has_failed(
    folder: Path, tmp_path: Path, name: str, old: bytes, new: bytes
) -> None:
    shutil.copytree(folder / "cut", tmp_path / "cut")
    file = tmp_path / "cut" / "model" / name
    whole = file.read_bytes()
    assert old in whole
    file.write_bytes(whole.replace(old, new, 1))
    shown, error = run("verify", folder / "plain.json", tmp_path / "cut", code=1)
    assert shown.startswith("failed: ")
    assert not error
    file.unlink()  # what is missing is a wrong argument
    run("verify", folder / "plain.json", tmp_path / "cut", code=2)


@pytest.mark.parametrize(
    ("key", "share"), [("mean_realised_change", -0.05), ("mean_predicted_change", 1.001)]
)
def test_a_small_change_does_not_pass_with_another_sign(
    folder: Path, key: str, share: float
) -> None:
    model = without_words(tiny_model("bert"), [3, 5])
    data = small_dataset(40, 3)
    found = certify_removal(model, data, None)
    honest = found["effect"][key]
    assert differences(found, model, data, None) == []
    for value in (honest + 1e-7, honest * (1 + 1e-5)):  # as another processor may round
        found["effect"][key] = value
        assert differences(found, model, data, None) == []
    found["effect"][key] = share * honest
    (line,) = differences(found, model, data, None)
    assert line.startswith(f"effect.{key} is")


@pytest.mark.parametrize(
    ("section", "key", "value", "found"),
    [
        ("effect", "decisions_changed", 99, "effect.decisions_changed is"),
        ("effect", "mean_realised_change", 5.0, "effect.mean_realised_change is"),
        ("accuracy", "after", 0.123, "accuracy.after is"),
        ("accuracy", "change", {"value": 0.0}, "accuracy.change.high is"),
        ("leak", "concept", "nothing", "leak.concept is"),
        ("effect", "rows", 60.0, "effect.rows is 60;"),
        ("non_interference", "fillings", 10, "non_interference.fillings is 10020"),
        ("data", "fitted", None, "data.fitted is"),
    ],
)
def test_one_changed_number_is_found(
    folder: Path, tmp_path: Path, section: str, key: str, value: object, found: str
) -> None:
    for name in ("plain", "signed"):
        certificate = json.loads((folder / f"{name}.json").read_text())
        certificate[section][key] = value
        (tmp_path / "c.json").write_text(json.dumps(certificate))
        shown, _ = run("verify", tmp_path / "c.json", folder / "cut", code=1)
        assert (found if name == "plain" else "its signature does not fit") in shown


@pytest.mark.parametrize("forged", ["x", None, [], 3, {}, {"algorithm": "ed25519", "value": "z"}])
def test_a_forged_signature_does_not_hold(folder: Path, tmp_path: Path, forged: object) -> None:
    certificate = json.loads((folder / "plain.json").read_text())
    (tmp_path / "c.json").write_text(json.dumps({**certificate, "signature": forged}))
    shown, _ = run("verify", tmp_path / "c.json", folder / "cut", code=1)
    assert "its signature is damaged" in shown


def test_what_is_no_certificate_is_refused(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "c.json"
    whole = json.loads((folder / "plain.json").read_text())
    for text, message in (
        ("{", "is no JSON"),
        ('{"format": "other"}', "is no lexical-sae removal certificate"),
        (json.dumps({**whole, "version": 7}), "has version 7; expected 2"),
        (json.dumps({**whole, "effect": None}), "has no whole 'effect'"),
        (json.dumps({**whole, "data": {}}), "has no whole 'data'"),
        (json.dumps({**whole, "seed": 2**70}), "expected a whole number from 0 to 4294967295"),
        (json.dumps({**whole, "seed": -1}), "has the seed -1; expected"),
        (json.dumps({**whole, "seed": True}), "has the seed True; expected"),
        ('{"a":' * 100_000, "is nested too deeply"),
        (json.dumps(whole)[:-1] + ', "x": ' + "[" * 500 + "]" * 500 + "}", "nested too deeply"),
        (json.dumps({**whole, "erased": True}), "claims 'erased', which `certify` does not"),
        (json.dumps(whole).replace('"seed"', '"version"', 1), "says 'version' twice"),
    ):
        file.write_text(text)
        _, error = run("verify", file, folder / "cut", code=2)
        assert message in error
    _, error = run("verify", tmp_path / "no.json", folder / "cut", code=2)
    assert "was not found; expected a certificate" in error


def test_bad_input(folder: Path, tmp_path: Path) -> None:
    cut, out = folder / "run", tmp_path / "x"
    for arguments, message in (
        (("suppress", cut, "lovly", "--output", out), "'lovly' is not in the dictionary; the nea"),
        (("suppress", cut, "--output", out), "No words were given"),
        (("suppress", cut, "--regex", ".", "--output", out), "would cut all"),
        (("suppress", cut, "--list", "nowhere", "--output", out), "'nowhere' is no list of words"),
        (("suppress", cut, "lovely", "--output", folder), "exists and is not empty"),
        (("certify", cut, "--output", tmp_path / "c.json"), "nothing to certify"),
        (("certify", folder / "cut", "--output", folder / "plain.json"), "exists; choose another"),
        (
            ("certify", folder / "cut", "--output", tmp_path / "c", "--sign", folder / "other.pem"),
            "holds no ed25519 private key",
        ),
    ):
        _, error = run(*arguments, code=2)
        assert message in error
        assert len(error.strip().splitlines()) == 1
    assert not out.exists()


def test_a_mask_that_does_not_hold_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny_model("bert")
    view = without_words(model, [3, 5])
    found = check_non_interference(view, TEXTS[:100])
    assert (found.fillings, found.differing) == (10_000, 0)
    with pytest.raises(ValueError, match="No word is cut"):
        check_non_interference(model, TEXTS[:100])
    # a gate that forgets the mask: cut words open as soon as their weights are large enough
    monkeypatch.setattr(LexicalLayer, "_bound", lambda self, theta, reach: theta.detach())
    assert check_non_interference(view, TEXTS[:100]).differing > 5_000


def test_the_mask_alone_changes_and_no_model_is_built(folder: Path) -> None:
    first, cut = (
        (folder / name / "model" / "model.safetensors").read_bytes() for name in ("run", "cut")
    )
    assert len(first) == len(cut)
    assert sum(a != b for a, b in zip(first, cut, strict=True)) == 2
    command = ["lexical-sae", "suppress", folder / "run", "funny", "--output", folder / "other"]
    code = f"import sys; sys.argv = {[str(part) for part in command]!r}\n"
    code += "from lexical_sae.cli import main; main()\nassert 'torch' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_damaged_files_are_refused(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "run", tmp_path / "run")
    weights, out = tmp_path / "run" / "model" / "model.safetensors", tmp_path / "x"
    whole = weights.read_bytes()
    for size in (500, len(whole) - 10):
        weights.write_bytes(whole[:size])
        _, error = run("suppress", tmp_path / "run", "funny", "--output", out, code=2)
        assert "is damaged; restore the original file" in error
    weights.write_bytes(whole)
    tokenizer = tmp_path / "run" / "model" / "tokenizer.json"
    tokenizer.write_text(tokenizer.read_text().replace('"funny"', '"funnx"'))
    _, error = run("suppress", tmp_path / "run", "lovely", "--output", out, code=2)
    assert "is not the one that the model was saved with" in error
    tokenizer.write_text("{")
    _, error = run("suppress", tmp_path / "run", "lovely", "--output", out, code=2)
    assert "is missing or damaged" in error
    assert not out.exists()


def test_a_tagger_is_certified_too() -> None:
    model = without_words(tiny_tagger(), [2, 4, 6])
    found = certify_removal(model, tagged_dataset(12, 1), None)
    assert found["non_interference"]["differing"] == 0
    assert found["effect"]["rows"] == sum(map(len, tagged_dataset(12, 1).tokens))
    assert "no training split" in found["leak"]["why"]
    assert differences(found, model, tagged_dataset(12, 1), None) == []


def test_a_model_alone_needs_its_data(folder: Path, tmp_path: Path) -> None:
    _, error = run("certify", folder / "cut" / "model", "--output", tmp_path / "c.json", code=2)
    assert "give --data" in error
    data = ("--data", folder / "data")
    run("certify", folder / "cut" / "model", "--output", tmp_path / "c.json", *data)
    run("verify", tmp_path / "c.json", folder / "cut" / "model", *data)
