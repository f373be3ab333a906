"""Content: words open at the word that means them, not at a comma or an "is"."""

from __future__ import annotations

from torch import Tensor

from lexical_sae.model.open_words import OpenWords
from lexical_sae.training.losses.rows import row_mean, share_outside


def content(
    attribution: Tensor, at_content: Tensor, open_words: OpenWords, rows: Tensor | None = None
) -> Tensor:
    """Mean over rows of Σ|A| from positions that are not content words / Σ|A|.

    `at_content` [P]: whether the position that opened each pair (`open_words.position`) holds a
    content word. Rows without contributions give 0.
    """
    return row_mean(share_outside(attribution, at_content, open_words), rows)
