"""Adaptation: teach the lexical head of an encoder that came without one, on unlabelled texts.

At some positions the token is masked and must be guessed, at others it is left and must be
copied. The first makes a position open the words that could stand there, the second keeps it
about the word that does stand there. The loss runs over the dictionary at those positions only.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from lexical_sae.model.backbone import backbone_states
from lexical_sae.model.dictionary import json_hash, tokenizer_hash
from lexical_sae.model.mode import in_mode
from lexical_sae.text.cache import cache_dir

if TYPE_CHECKING:
    from lexical_sae.model.lexical_sae import LexicalSAE


CACHE_VERSION = 2  # raised when the same inputs no longer give the same result


@dataclass(frozen=True)
class AdaptationSettings:
    """masked, copied: fractions of the word positions; at most max_rows of them in a step.

    `learning_rate` is the backbone's, and 0 leaves it alone: moved, it forgets some of what it was
    trained for, and classifiers that start from it learn more slowly (docs/choices.md).
    """

    steps: int = 100
    batch_size: int = 32
    learning_rate: float = 0.0
    head_learning_rate: float = 2e-3
    masked: float = 0.15
    copied: float = 0.15
    max_rows: int = 512
    seed: int = 0


def adapt_lexical_head(
    model: LexicalSAE,
    texts: Sequence[str],
    *,
    cache: bool = True,
    progress: bool = True,
    **settings: float,
) -> None:
    """Adapt in place. The result is cached under the hash of weights, texts and settings."""
    chosen = _checked_settings(settings)
    learned = _learned_parameters(model, with_backbone=chosen.learning_rate > 0)
    file = _cache_file(model, texts, chosen) if cache else None
    if file is not None and _load(learned, file):
        return
    with torch.random.fork_rng(devices=[]), in_mode(model, training=True):
        torch.manual_seed(chosen.seed)
        _run(model, learned, texts, chosen, progress)
    if file is not None:
        _save(learned, file)


def _checked_settings(settings: dict[str, float]) -> AdaptationSettings:
    known = [field.name for field in fields(AdaptationSettings)]
    for name in settings:
        if name not in known:
            raise ValueError(
                f"{name!r} is no setting of the adaptation; expected one of {', '.join(known)}."
            )
    chosen = AdaptationSettings(**settings)  # type: ignore[arg-type]
    if chosen.steps < 1 or chosen.batch_size < 1 or not 0 < chosen.masked + chosen.copied <= 1:
        raise ValueError(
            f"{chosen} cannot be run; expected steps and batch_size of at least 1, and masked + "
            "copied above 0 and at most 1."
        )
    return chosen


def _learned_parameters(model: LexicalSAE, with_backbone: bool) -> dict[str, nn.Parameter]:
    """What the adaptation changes; never the input embedding, which is half the weights and half
    the time, and training it changed neither loss nor accuracy (docs/performance.md)."""
    parts: dict[str, nn.Module] = {"transform": model.transform}
    if with_backbone:
        parts["backbone"] = model.backbone
    embedding = {id(p) for p in model.backbone.get_input_embeddings().parameters()}
    named = {
        f"{part}.{name}": parameter
        for part, module in parts.items()
        for name, parameter in module.named_parameters()
        if id(parameter) not in embedding and parameter.requires_grad
    }
    return named | {"weight": model.lexical.weight, "bias": model.lexical.bias}


def _run(
    model: LexicalSAE,
    learned: dict[str, nn.Parameter],
    texts: Sequence[str],
    settings: AdaptationSettings,
    progress: bool,
) -> None:
    backbone = [p for name, p in learned.items() if name.startswith("backbone.")]
    head = [p for name, p in learned.items() if not name.startswith("backbone.")]
    groups = [(backbone, settings.learning_rate), (head, settings.head_learning_rate)]
    groups = [(parameters, rate) for parameters, rate in groups if parameters]
    optimizer = torch.optim.AdamW(
        [{"params": parameters, "lr": rate} for parameters, rate in groups],
        weight_decay=0.0,
        fused=True,
    )
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer,
        max_lr=[rate for _, rate in groups],
        total_steps=settings.steps,
        pct_start=0.1,
    )
    coordinate = _coordinate_of_token(model)
    taught = False
    for batch in _with_progress(_batches(texts, settings), settings.steps, progress):
        loss = adaptation_loss(model, batch, coordinate, settings)
        if loss is not None:
            taught = True
            optimizer.zero_grad()
            loss.backward(inputs=[*backbone, *head])
            nn.utils.clip_grad_norm_([*backbone, *head], 1.0)
            optimizer.step()
            schedule.step()
    optimizer.zero_grad()  # what trains next must not start on these gradients
    if not taught:
        raise ValueError(
            f"None of the {len(texts)} texts has a word of the dictionary where one was drawn; "
            "expected texts in the language of the backbone."
        )


def adaptation_loss(
    model: LexicalSAE,
    batch: Sequence[str],
    coordinate: Tensor,
    settings: AdaptationSettings,
) -> Tensor | None:
    """Cross-entropy over the dictionary at masked and copied positions; None if there are none."""
    inputs = model.encode(batch, model.config.max_tokens).model_inputs()
    ids, mask = inputs["input_ids"], inputs["attention_mask"]
    target = coordinate[ids]  # [B, L], −1 where the token is not in the dictionary
    eligible = model.word_mask(ids, mask) & (target >= 0)
    draw = torch.rand(ids.shape, device=ids.device)
    masked = eligible & (draw < settings.masked)
    chosen = eligible & (draw < settings.masked + settings.copied)
    rows, columns = chosen.nonzero(as_tuple=True)
    if rows.numel() == 0:
        return None
    if rows.numel() > settings.max_rows:
        pick = torch.randperm(rows.numel(), device=ids.device)[: settings.max_rows]
        rows, columns = rows[pick], columns[pick]
    assert model.tokenizer is not None
    read = ids.masked_fill(masked, model.tokenizer.mask_token_id)
    with torch.set_grad_enabled(torch.is_grad_enabled() and settings.learning_rate > 0):
        states = backbone_states(model.backbone, model.config.backbone_kind, read, mask)
    h = model.transform(states)  # [B, L, H]
    z = F.linear(h[rows, columns], model.lexical.weight, model.lexical.bias)  # [rows, V]
    return F.cross_entropy(z, target[rows, columns])


def _coordinate_of_token(model: LexicalSAE) -> Tensor:
    """[vocabulary]: the dictionary coordinate of each token id, −1 if it has none."""
    tokenizer = model.tokenizer
    if tokenizer is None or tokenizer.mask_token_id is None:
        raise ValueError("The tokenizer has no mask token; adaptation needs one.")
    token_ids = model.lexical.token_ids[: model.lexical.words]  # senses share their word's row
    size = max(len(tokenizer), int(token_ids.max()) + 1)
    table = torch.full((size,), -1, dtype=torch.long, device=token_ids.device)
    table[token_ids] = torch.arange(len(token_ids), device=token_ids.device)
    return table


def _batches(texts: Sequence[str], settings: AdaptationSettings) -> Iterator[list[str]]:
    """`steps` batches from reshuffled passes over the texts, each of texts of like length."""
    generator = torch.Generator().manual_seed(settings.seed)
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    size = settings.batch_size
    batches = [order[start : start + size] for start in range(0, len(order), size)]
    queue: list[int] = []
    for _ in range(settings.steps):
        if not queue:
            queue = torch.randperm(len(batches), generator=generator).tolist()
        yield [texts[i] for i in batches[queue.pop()]]


def _with_progress(batches: Iterator[list[str]], steps: int, progress: bool) -> Iterator[list[str]]:
    if not progress:
        yield from batches
        return
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    yield from track(batches, "Adapting the lexical head", total=steps, console=console)


def _cache_file(model: LexicalSAE, texts: Sequence[str], settings: AdaptationSettings) -> Path:
    """Named by all that the result depends on: weights, tokenizer, lengths, texts, settings."""
    assert model.tokenizer is not None
    inputs = {
        "version": CACHE_VERSION,
        "settings": asdict(settings),
        "tokenizer": tokenizer_hash(model.tokenizer),
        "max_tokens": model.config.max_tokens,
        "backbone": model.config.backbone,
    }
    digest = hashlib.sha256(json_hash(inputs).encode())
    for part in (model.backbone, model.transform, model.lexical):
        for name, tensor in sorted(part.state_dict().items()):
            digest.update(name.encode())
            digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    for text in texts:
        encoded = text.encode()
        digest.update(len(encoded).to_bytes(8, "little") + encoded)
    return cache_dir() / "adapted" / f"{digest.hexdigest()}.safetensors"


def _save(learned: dict[str, nn.Parameter], file: Path) -> None:
    """A cache that cannot be written costs the next run time, not this one its result."""
    tensors = {name: p.detach().cpu().contiguous() for name, p in learned.items()}
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=file.parent) as scratch:
            save_file(tensors, Path(scratch) / file.name)
            os.replace(Path(scratch) / file.name, file)
    except OSError as error:
        warnings.warn(f"The adapted head could not be cached ({error}).", stacklevel=4)


@torch.no_grad()
def _load(learned: dict[str, nn.Parameter], file: Path) -> bool:
    """Whether the cache had it; a damaged file counts as none."""
    if not file.is_file():
        return False
    try:
        saved = load_file(file)
    except (OSError, SafetensorError):
        return False
    if set(saved) != set(learned):
        return False
    for name, value in saved.items():
        learned[name].copy_(value)
    return True
