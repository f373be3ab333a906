"""What may be asked of a classifier: texts that say something, and labels that it has."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lexical_sae.text.tokenise import check_not_blank, check_texts

if TYPE_CHECKING:
    from lexical_sae.model.lexical_sae import LexicalSAE


def check_request(model: LexicalSAE, texts: Sequence[str]) -> None:
    if model.config.task != "classification":
        raise ValueError(f"This model is for {model.config.task}; explain_tags explains taggers.")
    check_texts(texts)
    check_not_blank(texts)


def class_of(model: LexicalSAE, label: str | None) -> int | None:
    """The place of a label; None for none."""
    names = list(model.config.labels)
    if label is None:
        return None
    if label not in names:
        near = difflib.get_close_matches(str(label), names, n=1)
        known = ", ".join(names[:20])
        advice = f"did you mean {near[0]!r}?" if near else f"expected one of {known}."
        raise ValueError(f"The model has no label {label!r}; {advice}")
    return names.index(label)
