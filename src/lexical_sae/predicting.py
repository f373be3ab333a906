"""Labels for texts, in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lexical_sae.certify.evidence import Evidence, Judgement
    from lexical_sae.model.lexical_sae import LexicalSAE


@dataclass(frozen=True, eq=False)
class Predictions:
    """What a model says of N texts, in their order."""

    labels: tuple[str, ...]  # [N] names of the predicted classes
    probabilities: NDArray[np.float64]  # [N, C], each row adds up to 1
    open_words: NDArray[np.int64]  # [N]
    truncated: NDArray[np.bool_]  # [N] whether the text is longer than the model reads
    judgements: tuple[Judgement, ...] | None = None  # [N] if a policy or codes were given


def predict_texts(
    model: LexicalSAE,
    texts: Sequence[str],
    batch_size: int = 32,
    evidence: Evidence | None = None,
) -> Predictions:
    """Labels, probabilities and open words of ``texts``; the model's mode is left as it was."""
    import numpy as np
    import torch

    from lexical_sae.model.mode import in_mode
    from lexical_sae.model.precision import check_finite
    from lexical_sae.text.tokenise import check_not_blank, check_texts

    _check_model(model, batch_size)
    check_texts(texts)
    check_not_blank(texts)
    logits = np.empty((len(texts), len(model.config.labels)), dtype=np.float64)
    open_words = np.empty(len(texts), dtype=np.int64)
    truncated = np.empty(len(texts), dtype=np.bool_)
    judged: dict[int, Judgement] = {}
    # Longest first: what is too large for the memory fails at once.
    order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
    with torch.no_grad(), in_mode(model, training=False):
        for start in range(0, len(order), batch_size):
            part = order[start : start + batch_size]
            encoded = model.encode([texts[i] for i in part])
            state = model.classify(**encoded.model_inputs())
            check_finite(state.logits)
            logits[part] = state.logits.double().cpu().numpy()
            open_words[part] = state.open_words.counts().cpu().numpy()
            truncated[part] = encoded.truncated
            if evidence is not None:
                judged.update(zip(part, evidence.judge(state), strict=True))
    exponents = np.exp(logits - logits.max(axis=1, keepdims=True))
    names = model.config.labels
    return Predictions(
        labels=tuple(names[i] for i in logits.argmax(axis=1)),
        probabilities=exponents / exponents.sum(axis=1, keepdims=True),
        open_words=open_words,
        truncated=truncated,
        judgements=None if evidence is None else tuple(judged[i] for i in range(len(texts))),
    )


def _check_model(model: LexicalSAE, batch_size: int) -> None:
    if batch_size < 1:
        raise ValueError(f"batch_size is {batch_size}; expected at least 1.")
    if model.config.task != "classification":
        raise ValueError(
            f"This model is for {model.config.task}; predict_texts is for classifiers, "
            "predict_tags for taggers."
        )
