"""What people see of a sense: the words that are open beside it, and texts in which it is meant."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from lexical_sae.model.mode import in_mode
from lexical_sae.text.tokenise import check_texts

if TYPE_CHECKING:
    from lexical_sae.model.lexical_sae import LexicalSAE

FILE = "senses.json"
FORMAT = 1
BATCH = 32
LABEL_WORDS = 3
EXAMPLES = 3
LONGEST_EXAMPLE = 200  # characters


@dataclass(frozen=True)
class SenseNote:
    """The label of a sense, as words, and texts that show it."""

    label: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()


@dataclass(frozen=True)
class SenseName:
    """One sense of a word, as explanations give it."""

    word: str
    number: int
    label: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        return {"of": self.word, "number": self.number, "label": list(self.label)}


def shown_name(word: str, sense: SenseName | None) -> str:
    """bank₂ (river, shore)"""
    return word if sense is None or not sense.label else f"{word} ({', '.join(sense.label)})"


def sense_names(model: LexicalSAE) -> dict[int, SenseName]:
    """The coordinates that are senses, by name and label."""
    assert model.dictionary is not None
    names, notes = model.dictionary.words, model.sense_notes
    return {
        v: SenseName(sense.word, sense.number, notes.get(names[v], SenseNote()).label)
        for v, sense in model.dictionary.senses.items()
    }


@torch.no_grad()
def label_senses(model: LexicalSAE, texts: Sequence[str]) -> dict[str, SenseNote]:
    """Label every sense by `texts` and keep that in the model: under its name (bank₂) the words
    that open at the same positions more often than at those of the word's other senses."""
    if model.lexical.senses is None:
        raise ValueError("No word of this model has senses; expand some of its words first.")
    check_texts(texts)
    senses, coordinates = model.lexical.senses, model.lexical.senses.coordinates()  # [K, M]
    flat = coordinates.flatten().cpu()
    place = torch.full((model.lexical.keep.numel(),), -1)
    place[flat] = torch.arange(len(flat))
    times = torch.zeros(len(flat))  # [K·M] positions of each sense
    beside = torch.zeros(len(flat), model.lexical.words)  # [K·M, V₀] words open there
    best: list[list[tuple[float, str]]] = [[] for _ in flat]
    tagging = model.config.task == "tagging"
    by_length = sorted(texts, key=len)
    with in_mode(model, training=False):
        for start in range(0, len(by_length), BATCH):
            some = by_length[start : start + BATCH]
            inputs = model.encode(some).model_inputs()
            mask = model.word_mask(**inputs) if tagging else model.document_mask(**inputs)
            opened = model.lexical.positions(model.hidden_states(**inputs), mask)
            row, word, value = opened.row.cpu(), opened.word.cpu(), opened.value.cpu()
            at = (place[word] >= 0).nonzero()[:, 0]
            times += torch.bincount(place[word[at]], minlength=len(flat))
            own = model.lexical.word_of(opened.word).cpu()
            offsets = opened.offsets.tolist()
            for pair in at.tolist():
                which, here = int(place[word[pair]]), int(row[pair])
                beside[which, own[offsets[here] : offsets[here + 1]]] += 1
                best[which].append((-float(value[pair]), some[here // opened.shape[1]]))
    beside[torch.arange(len(flat)), senses.words.cpu().repeat_interleave(senses.senses)] = 0
    rate = (beside / times.clamp(min=1)[:, None]).unflatten(0, coordinates.shape)  # [K, M, V₀]
    others = (rate.sum(1, keepdim=True) - rate) / (senses.senses - 1)
    lift = (rate - others).flatten(0, 1)
    assert model.dictionary is not None
    names = model.dictionary.words
    model.sense_notes = {
        names[v]: SenseNote(_label(lift[i], model.dictionary.plain_words), _examples(best[i]))
        for i, v in enumerate(flat.tolist())
    }
    return model.sense_notes


def _label(lift: torch.Tensor, names: Sequence[str]) -> tuple[str, ...]:
    top = lift.topk(min(LABEL_WORDS, len(lift)))
    pairs = zip(top.values.tolist(), top.indices.tolist(), strict=True)
    return tuple(names[v] for value, v in pairs if value > 0)


def _examples(found: list[tuple[float, str]]) -> tuple[str, ...]:
    """The texts in which the sense is strongest."""
    several = dict.fromkeys(text for _, text in sorted(found))
    return tuple(text[:LONGEST_EXAMPLE] for text in list(several)[:EXAMPLES])


def notes_dict(notes: Mapping[str, SenseNote]) -> dict[str, Any]:
    return {name: {k: list(v) for k, v in asdict(note).items()} for name, note in notes.items()}


def write_notes(notes: Mapping[str, SenseNote], folder: Path) -> None:
    text = json.dumps({"format": FORMAT, "senses": notes_dict(notes)}, indent=2, ensure_ascii=False)
    (folder / FILE).write_text(text, encoding="utf-8")


def read_notes(folder: Path) -> dict[str, SenseNote]:
    file = folder / FILE
    if not file.is_file():
        return {}
    try:
        found = json.loads(file.read_text(encoding="utf-8"))["senses"]
        return {
            name: SenseNote(tuple(note["label"]), tuple(note["examples"]))
            for name, note in found.items()
        }
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError(f"{file} is damaged; restore the original file.") from None
