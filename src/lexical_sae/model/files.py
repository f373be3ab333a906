"""Saving and loading: safetensors with hashes in the metadata, no half-written file, no pickle."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from transformers.utils.hub import PushToHubMixin

from lexical_sae.model.dictionary import (
    Dictionary,
    dictionary_of,
    json_hash,
    surface,
    tokenizer_hash,
)
from lexical_sae.model.hub import model_folder
from lexical_sae.model.loading import loading, quiet
from lexical_sae.model.sense_notes import notes_dict, read_notes, write_notes
from lexical_sae.text.tokenise import load_tokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from lexical_sae.model.lexical_sae import LexicalSAE

FORMAT_VERSION = "1"
_PREFIX = "lexical_sae."
_PUSH_OPTIONS = ("commit_message", "private", "token", "revision", "create_pr")


def identity_hashes(model: LexicalSAE) -> dict[str, str]:
    """What a model's explanations depend on besides its weights."""
    if model.tokenizer is None or model.dictionary is None:
        raise ValueError("This model has no tokenizer; it cannot be saved without one.")
    hashes = {
        "labels": json_hash(list(model.config.labels)),
        "tokenizer": tokenizer_hash(model.tokenizer),
        "dictionary": model.dictionary.hash,
    }
    if model.lexical.senses is not None:
        hashes["senses"] = json_hash(notes_dict(model.sense_notes))
    return hashes


def save_model(
    model: LexicalSAE,
    folder: str | os.PathLike[str],
    save_weights: Callable[..., Any],
    options: dict[str, Any],
) -> None:
    """Write everything into a temporary folder beside the target, then move file by file."""
    if options.pop("is_main_process", True) is False:
        return
    hashes = identity_hashes(model)
    target = Path(folder)
    if target.is_file():
        raise ValueError(f"{target} is a file; expected a folder to save the model into.")
    push, repo = options.pop("push_to_hub", False), options.pop("repo_id", None) or target.name
    hub = {key: options.pop(key) for key in _PUSH_OPTIONS if key in options}
    target.mkdir(parents=True, exist_ok=True)
    written: set[str] = set()
    scratch = Path(tempfile.mkdtemp(prefix=".saving-", dir=target))
    try:
        with quiet():
            save_weights(scratch, **options)
        assert model.tokenizer is not None
        model.tokenizer.save_pretrained(scratch)
        if model.lexical.senses is not None:
            write_notes(model.sense_notes, scratch)
        for weights in scratch.glob("*.safetensors"):
            _add_metadata(weights, {"format_version": FORMAT_VERSION, **hashes})
        for file in sorted(scratch.iterdir()):
            os.replace(file, target / file.name)
            written.add(file.name)
        for stale in target.glob("*.safetensors*"):  # shards of an earlier, larger model
            if stale.name not in written:
                stale.unlink()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if push:
        PushToHubMixin.push_to_hub(model, repo, **hub)


def load_model(
    name: str | os.PathLike[str],
    load_weights: Callable[..., Any],
    args: tuple[Any, ...],
    options: dict[str, Any],
) -> LexicalSAE:
    model: LexicalSAE
    hub = {key: options.pop(key) for key in ("revision", "token", "cache_dir") if key in options}
    for settled in ("output_loading_info", "use_safetensors"):  # what does not fit is refused
        options.pop(settled, None)
    folder = model_folder(str(name), **hub)
    for needed in ("config.json", "tokenizer.json"):
        if not (folder / needed).is_file():
            raise ValueError(
                f"{folder} has no {needed}; expected a folder written by save_pretrained."
            )
    advice = "restore the original files."
    with loading(f"The model in {folder}", advice):
        kind = json.loads((folder / "config.json").read_text()).get("model_type")
    if kind != "lexical-sae":
        raise ValueError(
            f"{folder} holds a {kind!r} model, not a lexical-sae one; to build on it use "
            "LexicalSAE.from_backbone."
        )
    dtype = options.pop("dtype", options.pop("torch_dtype", None))
    with loading(f"The model in {folder}", advice):
        model, report = load_weights(
            folder, *args, dtype="auto", output_loading_info=True, use_safetensors=True, **options
        )
    absent = sorted(report["missing_keys"]) + sorted(report["unexpected_keys"])
    if absent or report["mismatched_keys"]:
        raise ValueError(
            f"The weights in {folder} do not fit its config.json (for instance "
            f"{(absent or [str(report['mismatched_keys'])])[0]}); {advice}"
        )
    if isinstance(dtype, torch.dtype):
        # a backbone may run in half precision; what is explained stays as it was saved
        backbone: torch.nn.Module = model.backbone
        for part in (backbone, model.transform):
            part.to(dtype)
    model.tokenizer = load_tokenizer(folder)
    model.dictionary = read_dictionary(model.tokenizer, model.lexical.token_ids.tolist())
    if model.lexical.senses is not None:
        model.sense_notes = read_notes(folder)
    _refuse_mismatch(folder, identity_hashes(model))
    return model


def read_dictionary(tokenizer: PreTrainedTokenizerBase, token_ids: list[int]) -> Dictionary:
    tokens: Any = tokenizer.convert_ids_to_tokens(token_ids)
    if None in tokens:
        missing = token_ids[tokens.index(None)]
        raise ValueError(
            f"The saved dictionary has token id {missing}, which its tokenizer does not know; "
            "the tokenizer is not the one that the model was saved with."
        )
    return dictionary_of(token_ids, [surface(tokenizer, token) for token in tokens])


def _add_metadata(path: Path, entries: dict[str, str]) -> None:
    """Put entries into a safetensors header, streaming the tensors as they are."""
    with path.open("rb") as source:
        size = int.from_bytes(source.read(8), "little")
        header = json.loads(source.read(size))
        metadata = header.setdefault("__metadata__", {})
        metadata.update({_PREFIX + key: value for key, value in entries.items()})
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)  # tensors stay aligned
        changed = path.with_suffix(".header")
        with changed.open("wb") as out:
            out.write(len(text).to_bytes(8, "little"))
            out.write(text)
            shutil.copyfileobj(source, out)
    os.replace(changed, path)


def _refuse_mismatch(folder: Path, found: dict[str, str]) -> None:
    from safetensors import safe_open

    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise ValueError(f"{folder} has no safetensors weights; expected model.safetensors.")
    for file in files:
        with safe_open(file, framework="pt") as weights:
            metadata = weights.metadata() or {}
        version = metadata.get(_PREFIX + "format_version")
        if version != FORMAT_VERSION:
            raise ValueError(
                f"{file} has format version {version!r}; this release reads {FORMAT_VERSION!r}."
            )
        for what, digest in found.items():
            saved = metadata.get(_PREFIX + what, "none")
            if saved != digest:
                raise ValueError(
                    f"The {what} beside {file} is not the one that the weights were saved with "
                    f"(sha256 {digest[:12]}…, expected {saved[:12]}…); restore the original files."
                )
