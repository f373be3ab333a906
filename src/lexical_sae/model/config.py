"""LexicalSAEConfig: everything needed to rebuild a model's shape without any hub."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from transformers import PretrainedConfig

from lexical_sae.model.gate import GATES, SATURATIONS, WINDOWS
from lexical_sae.model.head_choice import HEADS
from lexical_sae.model.pooling import POOLINGS
from lexical_sae.text.unread import NOT_FOR_TAGGERS, checked_words

TASKS = ("classification", "tagging")
DICTIONARIES = ("words", "texts", "all")
POSITIONS = ("words", "content")
BACKBONE_KINDS = ("masked_lm", "encoder")

_CHOICES: dict[str, tuple[str, ...]] = {
    "task": TASKS,
    "dictionary": DICTIONARIES,
    "positions": POSITIONS,
    "gate": GATES,
    "window": WINDOWS,
    "saturation": SATURATIONS,
    "pooling": POOLINGS,
    "head": HEADS,
    "backbone_kind": BACKBONE_KINDS,
}
# Set by the model itself, not by the person who builds one.
_DERIVED = (
    *("backbone", "backbone_kind", "dictionary_size", "labels", "task"),
    *("special_token_ids", "function_token_ids", "expanded_words", "senses", "unread"),
)


class LexicalSAEConfig(PretrainedConfig):
    """Shape of a `LexicalSAE`.

    dictionary: "words" (whole alphabetic words), "texts" (those of them that occur in the texts
    that the model is built with) or "all" (every token that is not special).
    positions: where a text's words may open: at all its "words", or at "content" only, which leaves
    punctuation and English function words out (a text of nothing else uses them all; a tagger
    decides at every token).
    gate: "shift" relu(z − θ) or "jump" z·1[z > θ]; window, window_width: the straight-through
    window, its width relative to the spread of the lexical logits; saturation: "none" or "log1p".
    pooling: "max" or "attention". head: "mlp", "linear" or "bcos"; head_width is that of hidden
    layers, hidden_bias the MLP's, head_depth the number of layers of a B-cos head (from 2; an MLP
    has 2). topk_per_position: at inference keep only the k largest words per token position
    (0 = all). max_tokens: texts are cut there, or with windows read in windows of that length.
    expanded_words: coordinates of words that have `senses` coordinates each, see `model.senses`;
    the further ones stand at the end of the dictionary. unread: words that are taken out of every
    text before it is read, see `text.unread`.
    """

    model_type = "lexical-sae"

    def __init__(
        self,
        labels: Sequence[str] = ("0", "1"),
        task: str = "classification",
        dictionary: str = "words",
        positions: str = "words",
        gate: str = "shift",
        window: str = "rectangle",
        window_width: float = 0.5,
        saturation: str = "none",
        pooling: str = "max",
        head: str = "mlp",
        head_width: int = 256,
        hidden_bias: bool = False,
        head_depth: int = 2,
        topk_per_position: int = 0,
        max_tokens: int = 128,
        windows: bool = False,
        dictionary_size: int = 0,
        special_token_ids: Sequence[int] = (),
        function_token_ids: Sequence[int] = (),
        expanded_words: Sequence[int] = (),
        senses: int = 1,
        unread: Sequence[str] = (),
        backbone_kind: str = "masked_lm",
        backbone: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        labels = check_labels(labels)
        for derived in ("id2label", "label2id"):  # from labels, which alone are kept
            kwargs.pop(derived, None)
        if kwargs.pop("num_labels", len(labels)) != len(labels):
            raise ValueError(f"num_labels does not fit the {len(labels)} labels; give labels only.")
        _refuse_misspelled(kwargs)
        super().__init__(
            id2label=dict(enumerate(labels)),
            label2id={name: index for index, name in enumerate(labels)},
            **kwargs,
        )
        self.labels = labels
        self.task = task
        self.dictionary = dictionary
        self.positions = positions
        self.gate = gate
        self.window = window
        self.window_width = float(window_width)
        self.saturation = saturation
        self.pooling = pooling
        self.head = head
        self.head_width = head_width
        self.hidden_bias = hidden_bias
        self.head_depth = head_depth
        self.topk_per_position = topk_per_position
        self.max_tokens = max_tokens  # transformers keeps max_length for generation
        self.windows = windows
        self.dictionary_size = dictionary_size
        self.special_token_ids = list(special_token_ids)
        self.function_token_ids = list(function_token_ids)
        self.expanded_words = list(expanded_words)
        self.senses = senses
        self.unread = checked_words(unread)
        self.backbone_kind = backbone_kind
        self.backbone = dict(backbone) if backbone is not None else None
        check_config(self)


def check_labels(labels: Sequence[str]) -> list[str]:
    if isinstance(labels, str) or not all(isinstance(name, str) for name in labels):
        raise ValueError(f"labels is {labels!r}; expected a list of at least two names.")
    names = list(labels)
    if len(names) < 2:
        raise ValueError(f"labels has {len(names)} name(s), {names}; expected at least two.")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"labels repeats {twice}; expected each name once.")
    return names


def check_config(config: LexicalSAEConfig) -> None:
    for key, allowed in _CHOICES.items():
        value = getattr(config, key)
        if value not in allowed:
            raise ValueError(f"{key} is {value!r}; expected one of {', '.join(allowed)}.")
    wholes = {"head_width": 1, "head_depth": 2, "topk_per_position": 0, "max_tokens": 3}
    for key, least in wholes.items():
        value = getattr(config, key)
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise ValueError(f"{key} is {value!r}; expected a whole number of at least {least}.")
    if config.head_depth > 2 and config.head != "bcos":
        raise ValueError(
            f"head_depth is {config.head_depth}, but the head is {config.head!r}; expected 2, or "
            "head 'bcos'."
        )
    if config.hidden_bias and config.head == "bcos":
        raise ValueError("hidden_bias is true, but a B-cos head has no biases; expected false.")
    if not isinstance(config.windows, bool):
        raise ValueError(f"windows is {config.windows!r}; expected true or false.")
    if config.windows:
        check_windows(config)
    _check_senses(config)
    if config.unread and config.task == "tagging":
        raise ValueError(NOT_FOR_TAGGERS)
    if not config.window_width > 0:
        raise ValueError(f"window_width is {config.window_width!r}; expected a number above 0.")


def check_windows(config: LexicalSAEConfig) -> None:
    """Refuse windows where they would not be exact, or are read anyway."""
    if config.task == "tagging":
        raise ValueError(
            "windows is for classifiers; a tagger reads long sentences in windows always."
        )
    if config.pooling != "max":
        raise ValueError(
            f"windows needs max pooling and this model has {config.pooling!r}, whose weights are "
            "over all positions at once; build the model with pooling='max', or let long texts be "
            "cut."
        )


def _check_senses(config: LexicalSAEConfig) -> None:
    expanded, senses = config.expanded_words, config.senses
    if not isinstance(senses, int) or (senses < 2 if expanded else senses != 1):
        raise ValueError(
            f"senses is {senses!r} with {len(expanded)} expanded words; expected at least 2 with "
            "some, 1 with none."
        )
    words = config.dictionary_size - len(expanded) * (senses - 1)
    if len(set(expanded)) < len(expanded) or not all(0 <= v < words for v in expanded):
        raise ValueError(
            f"expanded_words is {expanded}; expected different coordinates from 0 to {words - 1}."
        )


def _option_names() -> list[str]:
    parameters = inspect.signature(LexicalSAEConfig.__init__).parameters
    return [name for name in parameters if name not in ("self", "kwargs")]


def _refuse_misspelled(keys: Mapping[str, Any]) -> None:
    """transformers takes any key; one that nearly is ours is refused, not ignored."""
    known, transformers_own = _option_names(), PretrainedConfig()
    for key in keys:
        nearest = difflib.get_close_matches(key, known, n=1, cutoff=0.75)
        if nearest and not hasattr(transformers_own, key):
            raise ValueError(f"{key!r} is no key of LexicalSAEConfig; did you mean {nearest[0]!r}?")


def check_options(options: Mapping[str, Any]) -> None:
    """Refuse keys that are no option of a model, naming the nearest one that is."""
    known = [name for name in _option_names() if name not in _DERIVED]
    for key in options:
        if key not in known:
            nearest = difflib.get_close_matches(key, known, n=1, cutoff=0.4)
            hint = f"did you mean {nearest[0]!r}?" if nearest else f"known: {', '.join(known)}."
            raise ValueError(f"{key!r} is not an option of a LexicalSAE; {hint}")
